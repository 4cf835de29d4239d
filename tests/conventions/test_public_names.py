"""Every public name is documented, and every public function has an example that runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import sys
from functools import partial

import numpy as np
import pytest

from gossamer_ir.errors import GossamerError
from gossamer_testkit.examples import MATMUL
from tests.conftest import require_importable

pytestmark = pytest.mark.unserialized

BESIDES = {
    "gossamer_ir": ("arith.simplify.simplify", "transform.specialize.specialize", "verify.verify"),
    "gossamer_schedule": ("rules.apply_rule", "rules.default_schedule", "rules.schedule_report"),
    "gossamer_cuda_mma_sp": (
        "backend.CudaBackend",
        "cutlass.cutlass_sm80.from_cutlass_sm80",
        "cutlass.cutlass_sm80.to_cutlass_sm80",
        "cutlass.cutlass_sm90.from_cutlass_sm90",
        "cutlass.cutlass_sm90.to_cutlass_sm90",
        "instructions.metadata_register_programs.pack_metadata_program",
        "instructions.metadata_registers.pack_metadata",
        "instructions.metadata_registers.supplying_lanes",
        "instructions.metadata_registers.unpack_metadata",
        "instructions.operand_registers.pack_a",
        "instructions.operand_registers.pack_accumulator",
        "instructions.operand_registers.pack_b",
        "instructions.operand_registers.unpack_a",
        "instructions.operand_registers.unpack_accumulator",
        "instructions.operand_registers.unpack_b",
        "instructions.sparse_instructions.SparseInstruction",
        "instructions.sparse_instructions.required_instruction",
        "instructions.sparse_instructions.sparse_instruction",
        "n_m.compress.compress",
        "n_m.compress.decompress",
        "n_m.compress_programs.compress_program",
        "n_m.compress_programs.decompress_program",
        "n_m.compressed_matrix.CompressedMatrix",
        "n_m.compressed_matrix.compressed_matrix",
        "n_m.compressed_matrix.concatenate_compressed",
        "n_m.compressed_matrix.slice_compressed",
        "n_m.compressed_matrix.with_metadata_dtype",
        "n_m.metadata_programs.decode_metadata_program",
        "n_m.metadata_programs.encode_metadata_program",
        "n_m.metadata_words.decode_metadata",
        "n_m.metadata_words.encode_metadata",
        "n_m.n_m_storage.from_n_m",
        "n_m.n_m_storage.from_v_n_m",
        "n_m.n_m_storage.to_n_m",
    ),
    "gossamer_generic_cpu": ("backend.GenericCpu",),
    "gossamer_llvm_sve": ("backend.ScalableBackend",),
}
"""Public names of a distribution outside of its `__all__`."""

SHOWN_ELSEWHERE = {
    "gossamer_backend.BoundCall": "what `Kernel.bind` returns",
    "gossamer_backend.CacheWarning": "a warning",
    "gossamer_backend.CallPlan": "what `Kernel.plan` returns",
    "gossamer_backend.Kernel": "a protocol; `NativeKernel` has an example",
    "gossamer_backend.NativeCall": "what `NativeKernel.bind` returns",
    "gossamer_backend.JointPlan": "made of the plans of kernels, by operators",
    "gossamer_backend.PluginWarning": "a warning",
    "gossamer_ir.FormatDescription": "a node; `parse_format` reads one",
}
"""Classes that no example uses, with the reasons."""

MADE_ELSEWHERE = (
    "gossamer_backend.Backend",
    "gossamer_backend.BoundCall",
    "gossamer_backend.CallPlan",
    "gossamer_backend.JointPlan",
    "gossamer_backend.Kernel",
    "gossamer_backend.NativeCall",
    "gossamer_backend.NativeKernel",
    "gossamer_backend.Workspace",
)
"""Protocols, and the objects that backends and kernels return: their calls must be fast."""

PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def public(distribution):
    """The public functions and classes of a distribution, by their full names."""
    require_importable(distribution)
    package = importlib.import_module(distribution.package)
    paths = (*getattr(package, "__all__", ()), *BESIDES.get(distribution.package, ()))
    for path in paths:
        module, _, name = path.rpartition(".")
        home = importlib.import_module(f"{package.__name__}.{module}") if module else package
        member = getattr(home, name)
        if inspect.isfunction(inspect.unwrap(member)) or inspect.isclass(member):
            yield f"{package.__name__}.{path}", member


def example_of(path, member):
    """The examples of a docstring, with the names of the module that it documents."""
    home = sys.modules.get(member.__module__) or importlib.import_module(path.partition(".")[0])
    globs = {**vars(home), path.rpartition(".")[2]: member, "np": np}
    return doctest.DocTestParser().get_doctest(inspect.getdoc(member) or "", globs, path, path, 0)


def code_of_documents(root):
    """All examples of the READMEs and the documentation, which test_documents.py runs."""
    places = ("*.md", "docs/*.md", "packages/*/README.md", "plugins/*/README.md")
    texts = [path.read_text() for place in places for path in root.glob(place)]
    return "\n".join(block for text in texts for block in PYTHON.findall(text))


def test_every_public_name_is_documented(distribution):
    assert [name for name, member in public(distribution) if not inspect.getdoc(member)] == []


def is_shown(path, member, documents):
    """Return whether an example calls a function by its name, or uses a class; a class may also be returned
    by a function."""
    examples = "".join(example.source for example in example_of(path, member).examples)
    if inspect.isclass(member) and examples:
        return True
    return re.search(rf"\b{path.rpartition('.')[2]}\b", examples + documents) is not None


def test_every_public_name_is_shown_by_an_example(distribution, root):
    documents = code_of_documents(root)
    missing = {
        path for path, member in public(distribution) if not is_shown(path, member, documents)
    }
    prefix = f"{distribution.package}."
    assert missing == {name for name in SHOWN_ELSEWHERE if name.startswith(prefix)}


@pytest.mark.filterwarnings("ignore:Sparse .* beta:UserWarning")
def test_the_examples_of_public_names_run(distribution, monkeypatch, tmp_path):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for path, member in public(distribution):
        assert runner.run(example_of(path, member)).failed == 0, path


def calls(path, member):
    """A call of a public name with one odd value for all required arguments."""
    home, _, name = path.rpartition(".")
    call = getattr(importlib.import_module(home), name)
    declared = inspect.signature(member).parameters.values()
    needed = [each for each in declared if each.default is each.empty]
    by_name = [each.name for each in needed if each.kind is each.KEYWORD_ONLY]
    count = sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in needed)
    for value in (None, 12, "text", b"text", [], {}, (), object(), np.zeros(2), MATMUL):
        yield value, partial(call, *[value] * count, **dict.fromkeys(by_name, value))


def test_what_is_of_a_wrong_type_is_refused(distribution, monkeypatch, tmp_path):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    wrong = []
    for path, member in public(distribution):
        is_error = inspect.isclass(member) and issubclass(member, Exception)
        if (
            is_error
            or path in MADE_ELSEWHERE
            or member.__module__ == "gossamer_testkit.matrices.oracles"
        ):
            continue
        for value, call in calls(path, member):
            try:
                call()
            except GossamerError:
                continue
            except Exception as error:  # noqa: BLE001 - whatever is not ours is what is looked for
                wrong.append(f"{path}({value!r}): {error!r}")
    assert wrong == []


@pytest.mark.parametrize("name", SHOWN_ELSEWHERE)
def test_names_shown_elsewhere_are_classes(name):
    package, _, attribute = name.rpartition(".")
    assert inspect.isclass(getattr(importlib.import_module(package), attribute))
