"""Programs from script to machine code: every stage and the kernel agree with NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from sparse_programs import PROGRAMS, SMALL, TIMES_DENSE, TIMES_VECTOR, matrices

import gossamer
from gossamer.build import build, default_schedule, lowered
from gossamer_ir.contracts import Stats, Target
from gossamer_ir.interpret import run
from gossamer_ir.nodes import CompressedFixed, CompressedVaried, DenseVaried
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.specialize import specialize

TARGET = Target("generic-cpu")
KINDS = [(dtype, index) for dtype in ("float32", "float64") for index in ("int32", "int64")]
MEANS = {"short rows": 2.0, "middle rows": 20.0, "long rows": 100.0}


def module_of(script, dtype="float32", index="int32", **sizes):
    module = parse_module(script)
    (function,) = module.functions
    dtypes = {found.name: dtype for found in function.buffers}
    stored = (CompressedFixed, CompressedVaried, DenseVaried)
    dtypes |= {axis.name: index for axis in function.axes if isinstance(axis, stored)}
    params = {param.name for param in function.params}
    fixed = {name: size for name, size in sizes.items() if name in params}
    return specialize(module, fixed, dtypes=dtypes)


def stats_of(mean):
    return Stats(100, 100, int(100 * mean), 100, 0)


def arguments_of(module, call):
    (function,) = module.functions
    return {param.name: call.arguments[param.name] for param in function.params}


def stages_of(module, stats=None):
    return {
        found.stage: found for found in lowered(module, default_schedule(module, TARGET, stats))
    }


def text_of(name, stats=None, **options):
    module = module_of(PROGRAMS[name].script, **options)
    return print_module(stages_of(module, stats)["flat"])


def call_kernel(module, call, stats=None):
    kernel = build(module, stats=stats).kernel
    names = [param.name for param in kernel.signature.buffers]
    sizes = [param.name for param in kernel.signature.scalars]
    kernel(**{name: call.arguments[name] for name in (*names, *sizes)})


@pytest.mark.parametrize("sizes", [{}, {"feat": 5}])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_means_the_same(name, sizes):
    program = PROGRAMS[name]
    for matrix in matrices("float64", "int64"):
        if matrix.name not in SMALL:
            continue
        module = module_of(program.script, "float64", "int64", **sizes)
        for stage, found in stages_of(module, stats_of(20)).items():
            call = program.call(matrix, 5)
            (function,) = (f for f in found.functions if f.name == found.entry)
            run(found, {param.name: call.arguments[param.name] for param in function.params})
            np.testing.assert_array_equal(call.result, call.expected, f"{matrix.name}, {stage}")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("name", TIMES_DENSE)
def test_kernels_with_features_are_exact(name, dtype, index, threads):
    program = TIMES_DENSE[name]
    gossamer.set_num_threads(threads)
    for sizes in ({}, {"feat": 24}):
        module = module_of(program.script, dtype, index, **sizes)
        for matrix in matrices(dtype, index):
            call = program.call(matrix, 24)
            call_kernel(module, call)
            np.testing.assert_array_equal(call.result, call.expected, matrix.name)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("name", TIMES_VECTOR)
def test_kernels_for_one_number_per_row_are_exact(name, dtype, index, mean):
    program = TIMES_VECTOR[name]
    module = module_of(program.script, dtype, index)
    for matrix in matrices(dtype, index):
        call = program.call(matrix, 1)
        call_kernel(module, call, stats_of(MEANS[mean]))
        np.testing.assert_array_equal(call.result, call.expected, matrix.name)
