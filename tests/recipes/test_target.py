"""The recipe "Add a target" in docs/extending is complete: a GPU, a CPU and a CPU with scalable vectors are
each a row of a table, which goes from the text of a target to code, and no other code names one."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest

import gossamer as gs
from gossamer_cuda_mma_sp.instructions.matrix_instructions import matrix_instruction
from gossamer_cuda_mma_sp.target.architectures import ARCHITECTURES, KIB, GpuArchitecture
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_generic_cpu.backend import GenericCpu
from gossamer_generic_cpu.target.cpu_tables import CPU_TABLES
from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module
from gossamer_llvm_sve import machine
from gossamer_llvm_sve.backend import ScalableBackend
from gossamer_llvm_sve.vector_extension import EXTENSIONS, SVE, CpuModel
from gossamer_lower import lower_to_flat
from tests.conventions.syntax_trees import nodes_of, tree_of
from tests.recipes.recipe_pages import listed_files, sources

pytestmark = pytest.mark.unserialized

TEXT = """
@T.prim_func
def scaled(x: T.handle, y: T.handle, n: T.int64):
    T.stage("loop")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.{loop}:
        with T.block("b"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * T.float32(3)
"""
GPU, CPU, SCALABLE = "sm_121", "graniterapids", "neoverse-v3"
"""Targets that gossamer lacks, by LLVM's names."""


@pytest.fixture
def entries(monkeypatch):
    """The rows of the new targets, in the order of the recipe."""
    monkeypatch.setitem(ARCHITECTURES, GPU, GpuArchitecture(GPU, "8.8", 99 * KIB, 48))
    features = CPU_TABLES["x86_64"].cpus["sapphirerapids"] | {"avxifma"}
    monkeypatch.setitem(CPU_TABLES["x86_64"].cpus, CPU, features)
    model = CpuModel(SCALABLE, 128, ("sve", "sve2"))
    extension = SVE._replace(cpus=(*SVE.cpus, model))
    monkeypatch.setitem(EXTENSIONS, extension.backend, extension)
    assert machine.EXTENSIONS is EXTENSIONS


def test_a_new_gpu_has_code_machine_and_instructions(entries):
    loop = 'thread_binding(n, thread="blockIdx.x")'
    target = f"cuda-mma-sp:arch={GPU},driver=interpreter"
    kernel = gs.compile(TEXT.format(loop=loop), target=target)
    assert dict(kernel.artifact.metadata)["architecture"] == GPU
    y = np.zeros(5, np.float32)
    kernel(np.arange(5, dtype=np.float32), y, 5)
    assert y.tolist() == [0, 3, 6, 9, 12]
    gpu = gpu_of(Target.parse(f"cuda-mma-sp:arch={GPU}"))
    assert (gpu.ptx, gpu.multiprocessors) == ("8.8", 48)
    half, wide = "float16", "float32"
    product = matrix_instruction(half, half, wide, depth=32, is_sparse=True, gpu=gpu)
    assert product.depth == 32


def test_a_new_cpu_has_code(entries):
    target = Target.parse(f"generic-cpu:arch=x86-64,cpu={CPU}")
    flat = lower_to_flat(parse_module(TEXT.format(loop="serial(n)")))
    artifact = GenericCpu().compile(flat, target)
    assert f"cpu={CPU}" in artifact.target
    assert GenericCpu().machine(target).min_vector_bits == 512


def test_a_new_cpu_with_scalable_vectors_has_code(entries):
    backend = ScalableBackend(EXTENSIONS["llvm-sve"])
    target = Target.parse(f"llvm-sve:cpu={SCALABLE}")
    flat = lower_to_flat(parse_module(TEXT.format(loop="serial(n)")))
    artifact = backend.compile(flat, target)
    assert dict(artifact.metadata)["features"] == "sve sve2"
    assert backend.machine(target).is_scalable


NAMES = {
    *ARCHITECTURES,
    *(name for table in CPU_TABLES.values() for name in table.cpus if name != "generic"),
    *(model.name for extension in EXTENSIONS.values() for model in extension.cpus[1:]),
}
"""The names of targets, but not that of an architecture without anything else."""


def test_all_code_that_names_a_target_is_in_the_recipe(root):
    listed = listed_files(root, "Add a target")
    by_path = {
        path.relative_to(root).as_posix()
        for path in sources(root)
        if any(name in (text := path.read_text()) for name in NAMES)
        and names_a_target(tree_of(text))
    }
    assert by_path - listed == set()
    tables = {"architectures.py", "cpu_tables.py", "vector_extension.py"}
    assert tables <= {path.rpartition("/")[2] for path in by_path}


def names_a_target(tree):
    """Whether a constant that is not a docstring has the name of a target as a word."""
    documents = {id(node.value) for node in nodes_of(tree, ast.Expr)}
    return any(
        isinstance(node.value, str)
        and id(node) not in documents
        and not NAMES.isdisjoint(re.findall(r"[\w.-]*\w", node.value))
        for node in nodes_of(tree, ast.Constant)
    )


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ('if gpu == "sm_90":\n    pass', True),
        ('hint = "Expected sm_80."', True),
        ('CPU = "neoverse-v1"', True),
        ('"""Code for sm_90."""', False),
        ('CPU = "generic"', False),
    ],
)
def test_code_that_names_a_target_is_found(text, is_named):
    assert names_a_target(ast.parse(text)) == is_named


@pytest.mark.parametrize("plugin", ["generic-cpu", "llvm-sve"])
def test_the_page_of_a_backend_has_its_cpus(root, plugin):
    page = (root / "plugins" / plugin / "README.md").read_text()
    cpus = {name for table in CPU_TABLES.values() for name in table.cpus}
    if plugin == "llvm-sve":
        cpus = {model.name for extension in EXTENSIONS.values() for model in extension.cpus}
    assert {name for name in cpus if f"`{name}`" not in page} == set()
