"""The kernel ABI: backend and emitter agree on it, and C can call a kernel."""

import shutil
import subprocess
import threading

import numpy as np
import pytest

from gossamer_generic_cpu.backend import GenericCpu
from gossamer_ir.core.build import index, index_var
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Cast,
    Compare,
    For,
    Guard,
    IfThenElse,
    Load,
    Store,
    Var,
)

COMPILER = shutil.which("cc")

MAIN = """
#include <stdint.h>
#include <stdio.h>
struct gossamer_workspace {
    int64_t threads;
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
    int64_t failed_buffer;
    int64_t (*is_interrupted)(int64_t *);
};
int64_t gossamer_kernel(float *x, int64_t n, float scale, int64_t negate,
                        struct gossamer_workspace *);
int main(void) {
    struct gossamer_workspace workspace = {1, 0, -1, 0};
    float x[3] = {1, 2, 3};
    int64_t fine = gossamer_kernel(x, 3, 2.5f, 1, &workspace);
    printf("%d %g %g %g ", (int)fine, x[0], x[1], x[2]);
    int64_t failed = gossamer_kernel(x, 200, 2.5f, 1, &workspace);
    printf("%d %d", (int)failed, (int)workspace.failed_buffer);
    return 0;
}
"""


def scaling(serial):
    """x[i] = x[i] * scale, optionally negated, through a buffer; returns an error for n >= 100."""
    n, i = index_var("n"), index_var("i")
    x = Buffer("X", (n,), "float32", "x")
    t = Buffer("T", (n,), "float32")
    scaled = Binary("mul", Load("X", (i,), "float32"), Var("scale", "float32"))
    sign = Cast("float32", IfThenElse(Var("negate", "bool"), index(-1), index(1)))
    body = [
        Guard(Compare("lt", n, index(100)), "X"),
        Allocate(t),
        For("i", index(0), n, (Store("T", (i,), scaled),)),
        For("i_1", index(0), n, (
            Store("X", (index_var("i_1"),),
                  Binary("mul", sign, Load("T", (index_var("i_1"),), "float32"))),
        )),
    ]  # fmt: skip
    scalars = [("n", "int64"), ("scale", "float32"), ("negate", "bool")]
    return serial(body, buffers=(x,), scalars=scalars)


def test_scalar_parameters(build, serial):
    kernel = build(scaling(serial))
    for negate, expected in ((False, [2.5, 5]), (True, [-2.5, -5])):
        x = np.array([1, 2], np.float32)
        kernel(x=x, scale=2.5, negate=negate)
        assert x.tolist() == expected


@pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")
def test_object_code_is_called_from_c(serial, tmp_path):
    artifact = GenericCpu().compile(scaling(serial), Target.parse("generic-cpu"))
    (tmp_path / "kernel.o").write_bytes(artifact.code)
    (tmp_path / "main.c").write_text(MAIN)
    program = tmp_path / "program"
    command = [COMPILER, tmp_path / "main.c", tmp_path / "kernel.o", "-o", program]
    subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    assert done.stdout == "0 -2.5 -5 -7.5 1 0"


def test_compiling_from_several_threads(spmm, build, random_csr, dense_of):
    csr = random_csr(20, 30)
    right = []

    def work(features):
        result = np.zeros((20, features), np.float32)
        build(spmm(features))(*csr, np.ones((30, features), np.float32), result)
        right.append(np.array_equal(result, dense_of(csr, 30) @ np.ones((30, features))))

    workers = [threading.Thread(target=work, args=(features,)) for features in range(1, 13)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert right == [True] * 12
