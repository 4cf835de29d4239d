"""Lets that are used once are inlined into every statement, and only where their values stay the same."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
from msgspec.structs import replace

from gossamer_ir.core.build import index_var
from gossamer_ir.script import parse_module
from gossamer_lower.math.calls.single_use_lets import MAX_INLINED_DEPTH, with_single_uses_inlined
from gossamer_testkit.show import body_text

HEAD = """
@T.prim_func
def f(y: T.handle, n: T.int64) -> None:
    T.stage("loop")
    Y = T.match_buffer(y, (n,), "int64")
"""


def inlined(text, keep="n"):
    module = parse_module(HEAD + indent(dedent(text), "    "))
    (function,) = module.functions
    body = tuple(with_single_uses_inlined(list(function.body), keep=index_var(keep)))
    changed = replace(function, body=body)
    return body_text(replace(module, functions=(changed,)))


CASES = {
    "a store": ("a = n * 2\nY[0] = a", "Y[0] = n * 2"),
    "a condition": ("a = n * 2\nif a > 3:\n    Y[0] = n", "if n * 2 > 3:\n    Y[0] = n"),
    "an else branch": (
        "if n > 3:\n    Y[0] = n\nelse:\n    a = n * 2\n    Y[0] = a",
        "if n > 3:\n    Y[0] = n\nelse:\n    Y[0] = n * 2",
    ),
    "the condition of a loop": (
        "a = n * 2\nwhile Y[0] < a:\n    Y[0] = Y[0] + 1",
        "while Y[0] < n * 2:\n    Y[0] = Y[0] + 1",
    ),
    "the body of a loop": (
        "for i in T.serial(n):\n    a = i * 2\n    Y[i] = a",
        "for i in T.serial(n):\n    Y[i] = i * 2",
    ),
}


@pytest.mark.parametrize("where", CASES)
def test_a_let_is_inlined_into(where):
    before, after = CASES[where]
    assert inlined(before) == after


KEPT = {
    "used twice": ("a = n * 2\nY[0] = a\nY[1] = a", "n"),
    "a load, which a store may change": ("a = Y[1]\nY[1] = n\nY[0] = a", "n"),
    "the value that is kept": ("a = n * 2\nY[0] = a", "a"),
}


@pytest.mark.parametrize("case", KEPT)
def test_a_let_stays_if_it_is(case):
    before, keep = KEPT[case]
    assert inlined(before, keep) == before.replace("a = ", "a: T.int64 = ")


def test_expressions_do_not_become_deeper_than_the_limit():
    names = [f"a{at}" for at in range(2 * MAX_INLINED_DEPTH)]
    pairs = zip(names, ["n", *names], strict=False)
    text = "\n".join(f"{name} = {before} * 2" for name, before in pairs)
    *lets, store = inlined(f"{text}\nY[0] = {names[-1]}").splitlines()
    assert [let.count("* 2") for let in lets] == [MAX_INLINED_DEPTH, MAX_INLINED_DEPTH]
    assert store == f"Y[0] = {names[-1]}"
