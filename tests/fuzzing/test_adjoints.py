"""Adjoints of random programs agree with differences of the programs' results, or are refused by name."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from gradient_checks import checked_gradients, run_on_copies

from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import GossamerError, UnsupportedError
from gossamer_ir.interpret import GuardFailed, InterpreterError
from gossamer_ir.nodes import Cast
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.buffer_uses import buffers_read_in, buffers_written
from gossamer_ir.traversal.node_index import nodes_of_type
from gossamer_ir.verify import verify
from tests.fuzzing.programs.draw_program import draw_program
from tests.fuzzing.programs.smooth_programs import UNARY, draw_smooth_program

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

REFUSED = {
    "adjoint.expression",
    "adjoint.init",
    "adjoint.order",
    "adjoint.overwritten",
    "adjoint.reduction",
    "adjoint.statement",
}
OTHERS = {"checked", "without gradients", "rounded", "not finite", "another error"}


def test_gradients_of_random_programs_agree_with_differences():
    results = Counter(result_of(seed) for seed in range(240))
    assert results["checked"] >= 20
    assert results.keys() <= {*OTHERS, *REFUSED}


def test_gradients_of_smooth_programs_agree_with_differences():
    refused = Counter()
    for seed in range(100):
        program = draw_smooth_program(Random(seed))
        try:
            checked_gradients(verify(parse_module(program.script)), program.arguments)
        except UnsupportedError as error:
            refused[error.code] += 1
    assert refused.keys() <= REFUSED
    assert refused.total() < 20


def test_smooth_programs_have_all_constructs():
    scripts = [draw_smooth_program(Random(seed)).script for seed in range(100)]
    constructs = [
        *[
            "T.Select",
            "T.if_then_else",
            "T.max(C[i]",
            "T.min(C[i]",
            "T.init",
            "alloc_buffer",
            "else:",
        ],
        *["C[i] - ", "C[i] + ", "T.fma", "T.pow", "[I, J, K]", "[I, L, K]", "B[i, j]"],
        *[function.split("(")[0] for function in UNARY.values() if function.startswith("T.")],
    ]
    assert [text for text in constructs if not any(text in script for script in scripts)] == []


def result_of(seed):
    program = draw_program(Random(seed))
    module = program.module
    (function,) = module.functions
    floats = [each.name for each in function.buffers if DType.parse(each.dtype).is_float]
    try:
        module = verify(specialize(module, {}, dtypes=dict.fromkeys(floats, "float64")))
    except GossamerError:
        return "rounded"
    (function,) = module.functions
    # A step of a difference is less than what rounding to another dtype changes.
    dtypes = {cast.dtype for cast in nodes_of_type(function, Cast)} - {"float64"}
    if any(DType.parse(name).is_float for name in dtypes):
        return "rounded"
    written = buffers_written(function.body)
    read = {*floats} & buffers_read_in(function.body) - written
    passed = {each.name for each in function.buffers if each.handle is not None}
    if not read & passed or not written & passed & {*floats}:
        return "without gradients"
    arguments = arguments_of(program, module, seed)
    try:
        if not has_finite_results(module, arguments):
            return "not finite"
        checked_gradients(module, arguments)
    except UnsupportedError as error:
        return error.code
    except (GuardFailed, InterpreterError):
        return "another error"
    return "checked"


def has_finite_results(module, arguments):
    """Return whether all results are finite: others have no derivative, and one such as 0 * inf is NaN."""
    results = run_on_copies(module, arguments)
    with_floats = [array for array in results.values() if np.asarray(array).dtype.kind == "f"]
    return all(np.isfinite(array).all() for array in with_floats)


def arguments_of(program, module, seed):
    """The arguments of a program, with values at which results are smooth: no two are equal."""
    rng = np.random.default_rng(seed)
    (function,) = module.functions
    float_handles = {each.handle for each in function.buffers if each.dtype == "float64"}
    arguments = {**program.sizes}
    for name, array in program.arrays.items():
        smooth = rng.uniform(0.5, 2.0, array.shape) * rng.choice([-1, 1], array.shape)
        arguments[name] = smooth if name in float_handles else array
    return arguments
