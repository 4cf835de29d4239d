"""The pass manager runs the passes of a pipeline, and verifies their results on request."""

from __future__ import annotations

from importlib import import_module

import pytest
from msgspec.structs import replace

from gossamer_ir.errors import InternalError
from gossamer_lower.lowering_pass import record_of
from gossamer_lower.pipelines.bounds_check_flat import bounds_check_flat
from gossamer_lower.pipelines.extension_points import lower_with_extensions
from gossamer_lower.pipelines.flat_steps import FLAT_STEPS
from gossamer_lower.pipelines.lower_to_flat import lower_to_flat
from gossamer_lower.pipelines.pass_manager import PassManager
from gossamer_testkit.examples import SCALE, program
from gossamer_testkit.show import body_text

UNROLLED = program("for i in T.unroll(4): Y[i] = X[i]")


def broken(module):
    """An `unroll_loops` that returns its module as it is."""
    return module


def test_positions_before_and_after_each_pass_are_visited_in_order():
    positions = []

    def keep(position, module):
        positions.append(position)
        return module

    assert PassManager(steps=FLAT_STEPS[:2], extend=keep).run(SCALE)
    first, second = (step.name for step in FLAT_STEPS[:2])
    assert positions == [f"{at} {name}" for name in (first, second) for at in ("before", "after")]


def test_a_pass_goes_on_with_what_an_extension_returns():
    def exchange(position, module):
        return UNROLLED if position == f"before {FLAT_STEPS[0].name}" else module

    assert PassManager(steps=FLAT_STEPS, extend=exchange).run(SCALE) == lower_to_flat(UNROLLED)


@pytest.mark.parametrize(
    "lower",
    [lower_to_flat, lambda module, **options: lower_with_extensions(module, keep_at, **options)],
    ids=["alone", "with extensions"],
)
def test_a_pass_that_breaks_its_promise_is_named_if_each_is_verified(lower, monkeypatch):
    home = import_module("gossamer_lower.loops.unroll_loops")
    broken.lowering_pass = replace(record_of(home.unroll_loops), function=broken)
    monkeypatch.setattr(home, "unroll_loops", broken)
    lower(UNROLLED)
    with pytest.raises(InternalError, match=r"pass 'unroll_loops' .* still holds unrolled loops"):
        lower(UNROLLED, verify_each=True)


SCALABLE = program("""
for i in T.serial(n // (4 * T.vscale())):
    for l in T.vectorized(4 * T.vscale()):
        Y[i * (4 * T.vscale()) + l] = T.rsqrt(X[i * (4 * T.vscale()) + l])
""")


def flat_of_scalable(**arguments):
    return body_text(lower_to_flat(SCALABLE, verify_each=True, **arguments))


def test_a_pass_with_an_argument_runs_only_with_a_value_for_it():
    assert "T.vscale()" in flat_of_scalable()
    assert "rsqrt" in flat_of_scalable()
    assert "T.vscale()" not in flat_of_scalable(vscale=2)
    assert "rsqrt" in flat_of_scalable(vscale=2)
    lowered = flat_of_scalable(vscale=2, instructions=("sqrt",))
    assert "T.vscale()" not in lowered
    assert "rsqrt" not in lowered
    # No instructions is a value, None is none.
    assert "rsqrt" not in flat_of_scalable(instructions=())
    assert "rsqrt" in flat_of_scalable(instructions=None)


@pytest.mark.parametrize(
    "lower",
    [lower_to_flat, lambda module, **options: lower_with_extensions(module, keep_at, **options)],
    ids=["alone", "with extensions"],
)
def test_a_pass_with_an_argument_is_run_at_its_place_and_verified(lower, monkeypatch):
    """It is the first one, and its result is checked as that of any other."""
    home = import_module("gossamer_lower.vector.lower_vscale")

    def wrong(module, *, vscale):
        assert module.stage == "loop"
        return replace(module, stage="position")

    wrong.lowering_pass = replace(record_of(home.lower_vscale), function=wrong, gives="loop")
    monkeypatch.setattr(home, "lower_vscale", wrong)
    with pytest.raises(InternalError, match=r"'lower_vscale' .* it is of the position stage"):
        lower(SCALABLE, vscale=2, verify_each=True)


def test_a_flat_module_is_lowered_for_a_target_as_one_of_the_loop_stage():
    flat = replace(SCALABLE, stage="flat")
    arguments = {"vscale": 2, "instructions": ("sqrt",)}
    assert bounds_check_flat(flat, **arguments) == lower_to_flat(SCALABLE, **arguments)


def keep_at(_point, module):
    return module
