"""Exported kernels: PTX, machine code, and a manifest from which a program without gossamer launches them."""

import json
import re
import shutil

import numpy as np
import pytest

from gossamer_backend.internal_api import ValidatingBackend, export_artifact
from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.driver.interpreter_driver import InterpreterDriver
from gossamer_cuda_mma_sp.export import ptxas
from gossamer_cuda_mma_sp.export.ptxas import assemble_ptx
from gossamer_ir.interchange.records import Target

REVERSED = (
    'S = T.alloc_buffer((n,), "float32")',
    'for b in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):',
    '    L = T.alloc_buffer((32,), "float32", scope="shared")',
    '    for t in T.thread_binding(32, thread="threadIdx.x"):',
    "        if b * 32 + t < n:",
    "            L[t] = X[b * 32 + t]",
    "            S[b * 32 + t] = S[b * 32 + t] + L[t]",
    'for c in T.thread_binding(n, thread="blockIdx.x"):',
    "    Y[c] = S[n - 1 - c]",
)


@pytest.fixture
def exported(flat, tmp_path):
    def export(name=None):
        backend = ValidatingBackend(CudaBackend())
        target = Target.parse("cuda-mma-sp:arch=sm_90,ptx=8.5")
        artifact = backend.compile(flat(*REVERSED), target)
        return export_artifact(artifact, tmp_path, name=name, backend=backend)

    return export


@pytest.fixture
def without_ptxas(monkeypatch):
    monkeypatch.setattr(ptxas, "ptxas_path", lambda: None)


def test_the_manifest_has_all_that_a_launch_needs(exported):
    files = exported("reversed")
    manifest = json.loads(files.manifest.read_text())
    assert (manifest["architecture"], manifest["ptx_version"]) == ("sm_90", "8.5")
    first, second = manifest["kernels"]
    assert (first["symbol"], second["symbol"]) == ("reversed", "reversed_1")
    (launch,) = first["launches"]
    assert launch["grid"] == ["(n + 31) // 32", "1", "1"]
    assert launch["block"] == ["32", "1", "1"]
    assert (first["shared_bytes"], second["shared_bytes"]) == (128, 0)
    assert manifest["buffers"] == [{"name": "S", "dtype": "float32", "shape": ["n"]}]
    assert [each["kind"] for each in first["parameters"]] == ["array"] * 2 + ["scalar", "workspace"]
    assert set(manifest["files"]) == set(files.files) - {"manifest"}


def test_a_program_that_only_has_the_files_runs_the_kernels(exported):
    """It allocates what the manifest says, and launches in the order of the manifest."""
    files = exported()
    manifest, driver = json.loads(files.manifest.read_text()), InterpreterDriver()
    module = driver.load_module(files.files["ptx"].read_text())
    x, y = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
    sizes, memory = {"n": len(x)}, {}
    for name, array in (("x", x), ("y", y)):
        memory[name] = driver.allocate(array.nbytes)
        driver.copy_to_device(memory[name], array, stream=0)
    for buffer in manifest["buffers"]:
        size = 4 * int(np.prod([eval(each, {}, sizes) for each in buffer["shape"]]))
        memory[buffer["name"]] = driver.allocate(size)
        driver.clear(memory[buffer["name"]], size, stream=0)
    for kernel in manifest["kernels"]:
        function = driver.get_function(module, kernel["symbol"])
        last = kernel["parameters"][-1]
        workspace = driver.pin(last["elements"])
        workspace.write(np.full(last["elements"], last["initial"]))
        for launch in kernel["launches"]:
            grid, block = ([eval(e, {}, sizes) for e in launch[k]] for k in ("grid", "block"))
            values = [{**sizes, **memory}[argument] for argument in launch["arguments"]]
            driver.launch(
                function,
                grid=tuple(grid),
                block=tuple(block),
                arguments=list(map(np.int64, (*values, workspace.address))),
                stream=0,
            )
    driver.copy_to_host(y, memory["y"], stream=0)
    assert np.array_equal(y, x[::-1])


def test_only_names_of_kernels_are_renamed(exported):
    text = exported("mine").files["ptx"].read_text()
    assert "gossamer_kernel" not in text
    assert re.findall(r"\.entry (\w+)", text) == ["mine", "mine_1"]


def test_without_an_assembler_there_is_no_machine_code(exported, without_ptxas):
    files = exported()
    assert files.missing == {"cubin": "no ptxas was found"}
    assert sorted(files.files) == ["manifest", "ptx"]
    assert (files.library, files.no_library) == (None, None)


def test_machine_code_is_an_elf_file(exported):
    files = exported()
    if ptxas.ptxas_path() is None:
        pytest.skip("there is no ptxas: install nvidia-cuda-nvcc")
    assert files.files["cubin"].read_bytes().startswith(b"\x7fELF")


@pytest.mark.parametrize("program", ["false", "of-nothing"])
def test_an_assembler_that_fails_is_named(program, monkeypatch):
    monkeypatch.setattr(ptxas, "ptxas_path", lambda: shutil.which(program) or program)
    failed = assemble_ptx("// PTX", "sm_90")
    assert failed.cubin is None
    assert failed.reason.startswith("ptxas failed: ")
