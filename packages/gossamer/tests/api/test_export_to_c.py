"""Exported kernels called from C programs without Python, and from a process that only has ctypes."""

import ctypes
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import gossamer as gs
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import operator_named

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")

ROWS, COLUMNS, FEATURES = 1000, 700, 33

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "product.h"
#include "gossamer_csrmv.h"

enum { M = %(rows)d, N = %(columns)d, K = %(features)d };

#ifdef WITH_GOMP
extern void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned);
#define WORKSPACE gossamer_workspace_of(2, GOMP_parallel)
#else
#define WORKSPACE gossamer_one_thread()
#endif

/* Row i has the columns i %% 7, i %% 7 + 7, ... and the values 1, 2, 3, 1, 2, 3, ... */
int main(void)
{
    int32_t *indptr32 = malloc((M + 1) * sizeof(int32_t));
    int64_t *indptr64 = malloc((M + 1) * sizeof(int64_t));
    int64_t nnz = 0;
    for (int i = 0; i < M; i++) {
        indptr32[i] = (int32_t)nnz;
        indptr64[i] = nnz;
        if (i %% 5) nnz += (N - i %% 7 + 6) / 7;
    }
    indptr32[M] = (int32_t)nnz;
    indptr64[M] = nnz;
    int32_t *columns32 = malloc(nnz * sizeof(int32_t));
    int64_t *columns64 = malloc(nnz * sizeof(int64_t));
    float *a = malloc(nnz * sizeof(float));
    double *d = malloc(nnz * sizeof(double));
    for (int i = 0; i < M; i++)
        for (int64_t p = indptr64[i]; p < indptr64[i + 1]; p++) {
            int64_t j = i %% 7 + 7 * (p - indptr64[i]);
            columns32[p] = (int32_t)j;
            columns64[p] = j;
            a[p] = (float)(p %% 3 + 1);
            d[p] = (double)(p %% 3 + 1);
        }
    float *b = malloc(N * K * sizeof(float)), *c = malloc(M * K * sizeof(float));
    double *x = malloc(N * sizeof(double)), *y = malloc(M * sizeof(double));
    for (int j = 0; j < N; j++) {
        x[j] = j %% 11 - 5;
        for (int k = 0; k < K; k++) b[j * K + k] = (float)((j + k) %% 13 - 6);
    }
    memset(c, 255, M * K * sizeof(float));
    memset(y, 255, M * sizeof(double));

    struct gossamer_workspace first = WORKSPACE, second = WORKSPACE;
    int64_t status = product(a, b, c, indptr32, columns32, M, N, nnz, &first);
    if (status != GOSSAMER_OK) return puts(gossamer_status_text(status)), 10;
    status = gossamer_csrmv(d, x, y, indptr64, columns64, M, N, nnz, &second);
    if (status != GOSSAMER_OK) return puts(gossamer_status_text(status)), 11;

    long wrong = 0;
    for (int i = 0; i < M; i++) {
        double sum = 0;
        for (int64_t p = indptr64[i]; p < indptr64[i + 1]; p++) sum += d[p] * x[columns64[p]];
        wrong += sum != y[i];
        for (int k = 0; k < K; k++) {
            double value = 0;
            for (int64_t p = indptr64[i]; p < indptr64[i + 1]; p++)
                value += d[p] * b[columns64[p] * K + k];
            wrong += value != c[i * K + k];
        }
    }
    printf("%%ld wrong\\n", wrong);
    return wrong ? 1 : 42;
}
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """SpMM in float32 and SpMV in float64, in one directory."""
    directory = tmp_path_factory.mktemp("exported")
    spmm, spmv = (operator_named(name).program for name in ("spmm", "spmv"))
    gs.export(module_of(spmm, Variant(features=FEATURES)), directory, name="product")
    gs.export(module_of(spmv, Variant("float64", "int64", "int64")), directory)
    sizes = {"rows": ROWS, "columns": COLUMNS, "features": FEATURES}
    (directory / "main.c").write_text(PROGRAM % sizes)
    return directory


FLAGS = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror"]
LINKS = {
    "objects, one thread": ["main.c", "product.o", "gossamer_csrmv.o"],
    "objects, GOMP": ["-DWITH_GOMP", "main.c", "product.o", "gossamer_csrmv.o", "-fopenmp"],
    "position independent executable": ["-pie", "-fPIE", "main.c", "product.o", "gossamer_csrmv.o"],
    "libraries": ["main.c", "-L.", "-lproduct", "-lgossamer_csrmv", "-Wl,-rpath,."],
}


@pytest.mark.parametrize("link", LINKS)
def test_two_kernels_run_in_one_c_program(exported, link):
    words = LINKS[link]
    if "-fopenmp" in words and not is_gomp_linked(exported):
        pytest.skip("the C compiler has no libgomp")
    done = subprocess.run(
        [COMPILER, *FLAGS, "-o", "main", *words],
        cwd=exported,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    ran = subprocess.run(
        ["./main"], cwd=exported, capture_output=True, text=True, env={}, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (42, "0 wrong\n", "")
    linked = subprocess.run(
        ["ldd", "main"], cwd=exported, capture_output=True, text=True, check=False
    )
    assert "python" not in linked.stdout


def is_gomp_linked(directory):
    (directory / "empty.c").write_text("int main(void) { return 0; }\n")
    command = [COMPILER, "-fopenmp", "-o", "empty", "empty.c"]
    return subprocess.run(command, cwd=directory, capture_output=True, check=False).returncode == 0


GUARDED = """
@T.prim_func
def take(x: T.handle, p: T.handle, y: T.handle, n: T.int64, m: T.int64) -> None:
    X = T.match_buffer(x, (n,), "float32")
    P = T.match_buffer(p, (m,), "int64")
    Y = T.match_buffer(y, (m,), "float32")
    for i in T.serial(m):
        with T.block("take"):
            vi = T.axis.spatial(m, i)
            Y[vi] = X[P[vi]]
"""

FAILING = """
#include <string.h>
#include "take.h"
int main(void)
{
    float x[3] = {1, 2, 3}, y[2] = {0, 0};
    int64_t p[2] = {2, 0};
    struct gossamer_workspace workspace = gossamer_one_thread();
    if (take(x, p, y, 3, 2, &workspace) != GOSSAMER_OK || y[0] != 3 || y[1] != 1) return 1;
    if (take_failed_buffer(&workspace)) return 2;
    p[1] = 3;
    if (take(x, p, y, 3, 2, &workspace) != GOSSAMER_OUT_OF_BOUNDS) return 3;
    return strcmp(take_failed_buffer(&workspace), "X") ? 4 : 0;
}
"""


def test_a_failing_guard_is_a_status_and_a_name(tmp_path):
    gs.export(GUARDED, tmp_path, name="take")
    (tmp_path / "main.c").write_text(FAILING)
    command = [COMPILER, *FLAGS, "-o", "main", "main.c", "take.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run(["./main"], cwd=tmp_path, check=False).returncode == 0


WITHOUT_GOSSAMER = """
import ctypes, json, pathlib, sys
manifest = json.loads(pathlib.Path("gossamer_csrmv.json").read_text())
library = ctypes.CDLL("./" + manifest["files"]["library"]["name"])
class Workspace(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int64), ("parallel", ctypes.c_void_p), ("failed", ctypes.c_int64),
                ("is_interrupted", ctypes.c_void_p)]
kinds = {"double *": ctypes.c_double, "int64_t *": ctypes.c_int64}
values = {"a": [2, 3, 4], "x": [1, 10], "y": [7, 7, 7], "indptr": [0, 1, 1, 3], "indices": [1, 0, 1],
         "m": 3, "n": 2, "nnz": 3}
arguments = []
for param in manifest["parameters"]:
    value = values[param["name"]]
    if param["kind"] == "array":
        value = values[param["name"]] = (kinds[param["c_type"]] * len(value))(*value)
        arguments.append(value)
    else:
        arguments.append(ctypes.c_int64(value))
function = getattr(library, manifest["symbol"])
function.restype = ctypes.c_int64
status = function(*arguments, ctypes.byref(Workspace(1, None, -1, None)))
assert status == manifest["returns"]["statuses"]["OK"]
assert list(values["y"]) == [20, 0, 43], list(values["y"])
assert not [name for name in sys.modules if name.startswith(("gossamer", "numpy", "llvmlite"))]
"""


def test_the_library_is_called_through_the_manifest_alone(exported):
    command = [sys.executable, "-I", "-W", "error", "-c", WITHOUT_GOSSAMER]
    done = subprocess.run(command, cwd=exported, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


SCRATCH = """
@T.prim_func
def shifted(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    S = T.alloc_buffer((n,), "float32")
    for i in T.serial(n):
        S[i] = X[i]
    for i in T.serial(n):
        Y[i] = S[n - 1 - i]
"""


def test_an_object_takes_nothing_but_the_c_library(exported, tmp_path):
    files = gs.export(SCRATCH, tmp_path)
    libc = {"calloc", "free", "memcpy", "memmove", "memset"}
    for manifest in (files.manifest, *exported.glob("*.json")):
        assert set(json.loads(manifest.read_text())["requires"]) <= libc
    assert {"calloc", "free"} <= set(json.loads(files.manifest.read_text())["requires"])
    library = ctypes.CDLL(str(files.library))
    assert library.gossamer_shifted is not None


def test_the_object_is_position_independent_and_its_stack_not_executable(exported):
    """Otherwise, a linker would print a warning."""
    flags = ["-shared", "-Wl,-z,text", "-Wl,--fatal-warnings", "-Wl,--warn-execstack"]
    command = [COMPILER, *flags, "-o", "both.so", "product.o", "gossamer_csrmv.o"]
    done = subprocess.run(command, cwd=exported, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert np.array_equal([hasattr(ctypes.CDLL(str(exported / "both.so")), name)
                           for name in ("product", "gossamer_csrmv", "gossamer_kernel")],
                          [True, True, False])  # fmt: skip
