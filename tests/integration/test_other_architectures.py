"""Operators with their default schedules, and exported kernels, compiled for other architectures."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.cli import main
from gossamer.compilation.build_kernels import compile_artifact
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import operator_named
from gossamer.targets.resolve_target import machine_for, registry
from gossamer_ir.core.dtypes import NUMBERS, vscale_factor
from gossamer_ir.interchange.records import Target
from gossamer_testkit.matrices import cases, oracles
from tests.integration.scalable_programs import BUILDERS, operands

TARGETS = (
    "generic-cpu:arch=aarch64",
    "generic-cpu:arch=riscv64",
    "generic-cpu:arch=riscv64,features=v+zba+zbb",
)
MATRICES = [case for case in cases.csr_cases() if case.name != "nan and infinity"]
"""Those whose products with integers are exact."""


@pytest.fixture(params=TARGETS)
def target(request):
    """Each target; skips the test where it cannot be emulated."""
    probe = registry.backend("generic-cpu").probe(Target.parse(request.param))
    if not probe.is_usable:
        pytest.skip(probe.reason)
    return request.param


def integers(*shape):
    return np.random.default_rng(7).integers(-3, 4, shape).astype(np.float32)


def as_scipy(case):
    return sparse.csr_array((case.data, case.indices, case.indptr), shape=case.shape)


@pytest.mark.unserialized
def test_products_are_those_of_the_oracle(target):
    for case in MATRICES:
        matrix, vector = as_scipy(case), integers(case.shape[1])
        result = gs.spmv(matrix, vector, target=target)
        np.testing.assert_array_equal(result, oracles.spmv(case, vector), case.name)
        for features in (1, 5, 33):
            dense = integers(case.shape[1], features)
            result = gs.spmm(matrix, dense, target=target)
            np.testing.assert_array_equal(result, oracles.spmm(case, dense), case.name)


@pytest.mark.unserialized
def test_sampled_products_are_those_of_the_oracle(target):
    for case in MATRICES:
        for features in (1, 33):
            left, right = (integers(size, features) for size in case.shape)
            result = gs.sddmm(as_scipy(case), left, right, target=target)
            np.testing.assert_array_equal(result.data, oracles.sddmm(case, left, right), case.name)


@pytest.mark.unserialized
def test_attention_is_that_of_the_oracle(target):
    rng, unit = np.random.default_rng(3), np.finfo(np.float32).eps
    for case in MATRICES:
        for features in (3, 33):
            queries, keys, values = (
                rng.standard_normal((size, features)).astype(np.float32)
                for size in (case.shape[0], case.shape[1], case.shape[1])
            )
            result = gs.attention(as_scipy(case), queries, keys, values, target=target)
            expected = oracles.attention(case, queries, keys, values)
            bound = oracles.attention_bound(case, queries, keys, values)
            assert (np.abs(result - expected) <= unit * bound).all(), case.name


@pytest.mark.unserialized
@pytest.mark.parametrize("size", [2, 8])
def test_products_of_blocks_are_those_of_the_oracle(size, target):
    for case in MATRICES:
        if 0 in case.shape:
            continue
        blocks = integers(len(case.indices), size, size)
        shape = tuple(size * extent for extent in case.shape)
        matrix = sparse.bsr_array((blocks, case.indices, case.indptr), shape=shape)
        for features in (1, 20):
            dense = integers(shape[1], features)
            rows = dense.reshape(-1, size, features)
            expected = oracles.bsr_spmm(case.indptr, case.indices, blocks, dense=rows)
            result = gs.spmm(matrix, dense, target=target)
            np.testing.assert_array_equal(result, expected.reshape(shape[0], features), case.name)


@pytest.mark.unserialized
@pytest.mark.parametrize("dtype", NUMBERS)
def test_vectors_are_right_in_every_dtype(dtype, target):
    """Masked and gathered ones, and their sums."""
    for name in BUILDERS:
        builder = BUILDERS[name](f"{vscale_factor(dtype)} * T.vscale()", dtype)
        kernel = gs.compile(builder.program, schedule=builder, target=target)
        for size in (0, 1, 15, 16, 17, 37):
            arguments, expected = operands(name, size, dtype)
            kernel(**arguments)
            np.testing.assert_array_equal(arguments["c"], expected, err_msg=f"{name}, {size}")


def test_the_machine_has_the_vectors_of_its_architecture():
    machines = {text: machine_for(text) for text in TARGETS}
    vectors = [(one.min_vector_bits, one.vector_registers) for one in machines.values()]
    # Without the vector extension, a register of RISC-V has one lane.
    assert vectors == [(128, 32), (128, 8), (128, 32)]


def test_a_kernel_is_labelled_emulated_and_runs_on_one_thread(target, tmp_path, capsys):
    path = tmp_path / "a.npz"
    sparse.save_npz(path, sparse.random_array((30, 40), density=0.2, format="csr", dtype="f4"))
    arguments = ["run", "spmm", "--matrix", str(path), "--repeat", "1", "--check", "--threads", "2"]
    before = gs.get_num_threads()
    try:
        assert main([*arguments, "--features", "20", "--target", target]) == 0
    finally:
        gs.set_num_threads(before)
    printed = capsys.readouterr().out
    architecture = "aarch64" if "aarch64" in target else "riscv64"
    assert f"on        1 thread, {target}, emulated by qemu-{architecture}-static" in printed
    assert "within the rounding" in printed


def test_targets_do_not_share_keys():
    module = module_of(operator_named("spmv").program, Variant())
    targets = ("generic-cpu", *TARGETS, f"{TARGETS[1]},cpu=sifive-u74")
    made = [compile_artifact(module, target=text) for text in targets]
    assert len({artifact.target for artifact in made}) == len(targets)
    assert len({artifact.code for artifact in made}) >= len(targets) - 1


MAIN = """
#include <stdio.h>
#include "product.h"

int main(void)
{
    float a[] = {1, 2, 3}, x[] = {10, 20, 30, 40}, y[2];
    int32_t indptr[] = {0, 2, 3}, indices[] = {0, 3, 2};
    struct gossamer_workspace workspace = gossamer_one_thread();
    int64_t status = product(a, x, y, indptr, indices, 2, 4, 3, &workspace);
    printf("%d %g %g\\n", (int)status, y[0], y[1]);
    return 0;
}
"""


@pytest.mark.parametrize("name", ["aarch64", "riscv64"])
def test_an_exported_kernel_is_linked_by_a_cross_compiler(name, tmp_path):
    compiler, emulator = f"{name}-linux-gnu-gcc", f"qemu-{name}-static"
    missing = [program for program in (compiler, emulator) if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not found on the path")
    program = module_of(operator_named("spmv").program, Variant())
    files = gs.export(program, tmp_path, name="product", target=f"generic-cpu:arch={name}")
    # The machine of the shared library is that of the object file.
    machines = [path.read_bytes()[18:20] for path in (files.object, files.library)]
    assert machines[0] == machines[1]
    (tmp_path / "main.c").write_text(MAIN)
    command = [compiler, "-static", "main.c", "product.o", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([emulator, "main"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"0 90 90\n"
