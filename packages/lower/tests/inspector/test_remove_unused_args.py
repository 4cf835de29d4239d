"""`remove_unused_args`: parameters that nothing reads are removed, with the arguments of calls."""

from __future__ import annotations

import numpy as np
from searching_programs import at_stage

from gossamer_ir.interpret import run
from gossamer_ir.verify import verify
from gossamer_lower import lower_to_flat, remove_unused_args
from gossamer_testkit.examples import program


def test_arguments_of_calls_go_with_the_parameters():
    module = lower_to_flat(program("for i in T.parallel(n): Y[i] = X[i]"))
    (caller, callee) = module.functions
    assert [param.name for param in caller.params] == ["x", "y", "p", "n"]
    after = verify(remove_unused_args(module))
    assert [param.name for param in after.functions[0].params] == ["x", "y", "n"]
    assert after.functions[1] == callee
    x, y = np.arange(3, dtype="float32"), np.zeros(3, "float32")
    run(after, {"x": x, "y": y, "n": 3})
    np.testing.assert_array_equal(x, y)


def test_axes_keep_what_they_are_stored_in():
    module = at_stage("fused", "position")
    after = verify(remove_unused_args(module))
    assert {"p", "q", "r", "s"} <= {param.name for param in after.functions[0].params}
