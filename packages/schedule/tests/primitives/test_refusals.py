"""Every error code of the primitives, with a smallest program that raises it."""

from __future__ import annotations

import ast
import fnmatch
import re
from pathlib import Path

import pytest
from docstring_calls import example_of
from nest_programs import COPY
from refused import reason_of

import gossamer_schedule
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_schedule import PRIMITIVES, apply, get_blocks, get_iterations, get_loops, replay
from gossamer_testkit import examples

REPLAY_CASES = [
    ("replay.no_primitive", Step("tile", {})),
    ("replay.arguments", Step("unroll", {})),
    ("replay.arguments", Step("unroll", {"loop": "i", "times": 2})),
    ("replay.arguments", Step("unroll", {"loop": 3})),
    ("replay.arguments", Step("split", {"loop": "i", "factors": "16"})),
]
ANY_STAGE = ("annotate", "sample_categorical", "unannotate")


@pytest.mark.parametrize(("code", "step"), REPLAY_CASES)
def test_refusals_of_traces(code, step):
    assert reason_of(replay, examples.SCALE, (step,)) == code


@pytest.mark.parametrize("op", sorted(PRIMITIVES.keys() - set(ANY_STAGE)))
def test_the_wrong_stage_is_refused(program, op):
    module, arguments = example_of(op)
    wrong = program(COPY) if module.stage == "coordinate" else examples.SPMM_COORDINATE
    assert reason_of(apply, wrong, Step(op, arguments)) == f"{op}.stage"


@pytest.mark.parametrize("op", sorted(PRIMITIVES))
def test_an_unknown_function_is_refused(op):
    module, arguments = example_of(op)
    reason = reason_of(apply, module, Step(op, arguments | {"function": "other"}))
    assert reason == f"{op}.no_function"


NAMING = ("loop", "loops", "block", "iteration")
"""The arguments that name something in a module."""


@pytest.mark.parametrize(
    ("what", "op"),
    [(what, op) for what in NAMING for op in sorted(PRIMITIVES) if what in example_of(op)[1]],
)
def test_an_unknown_name_is_refused_and_what_exists_is_listed(op, what):
    module, arguments = example_of(op)
    unknown = (arguments[what][0], "nowhere") if what == "loops" else "nowhere"
    with pytest.raises(ScheduleError, match="'nowhere'") as caught:
        apply(module, Step(op, arguments | {what: unknown}))
    assert caught.value.code == f"schedule.{op}.no_{what.removesuffix('s')}"
    existing = {"block": get_blocks, "iteration": get_iterations}.get(what, get_loops)(module)
    assert ", ".join(f"'{name}'" for name in existing) in str(caught.value)


def test_look_ups_name_what_exists(program):
    module = program(COPY)
    assert get_loops(module) == get_loops(module, "copy") == ("i", "j")
    assert get_blocks(module) == ("copy",)
    assert get_iterations(examples.SPMM_COORDINATE) == ("csrmm",)
    assert reason_of(get_loops, module, "nowhere") == "get_loops.no_block"


TESTS = Path(__file__).parents[1]
COMMON = {"no_function", "no_loop", "no_block", "no_iteration", "no_buffer", "stage", "kind"}


def refusals_of_source():
    """The code of each error in the source (`*` stands for parts that are only known at run time), and its
    keywords."""
    root = Path(gossamer_schedule.__file__).parent
    for path in root.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "schedule_error":
                text = ast.unparse(call.args[0]).removeprefix("f").strip("'\"")
                code = re.sub(r"{[^}]+}", "*", text.replace("{_NAME}", path.stem))
                yield code, {keyword.arg for keyword in call.keywords}


def codes_of_tests(prefixes):
    """The texts in all tests that are codes of errors."""
    code = re.compile(rf"(?:schedule\.)?((?:{'|'.join(prefixes)})\.[a-z_]+)")
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                match = code.fullmatch(node.value)
                if match:
                    yield match[1]


def test_every_code_has_a_case():
    reasons = {code for code, _ in refusals_of_source() if "." in code}
    codes = {code for code in reasons if code.split(".")[1] not in COMMON}
    prefixes = {code.split(".")[0] for code in codes} - {"*"}
    cases = set(codes_of_tests(sorted(prefixes | PRIMITIVES.keys())))
    pinned = {code for code in cases if code.split(".")[1] not in COMMON}
    assert [code for code in sorted(codes) if not fnmatch.filter(pinned, code)] == []
    assert [code for code in pinned if not any(fnmatch.fnmatch(code, each) for each in codes)] == []
    assert len(pinned) > 30


def test_refusals_for_lack_of_a_proof_have_the_needed_condition():
    missing = [
        code
        for code, keywords in refusals_of_source()
        if code.endswith("not_proved") and "needs" not in keywords
    ]
    assert missing == []
