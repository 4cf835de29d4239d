"""The order of rules: what they declare of it, and which of them must."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from msgspec.structs import replace

from gossamer_ir.errors import InternalError
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Grid, Machine
from gossamer_schedule.rules import RULES, apply_rule
from gossamer_schedule.rules.library.block_spmv import block_spmv
from gossamer_schedule.rules.ordered_rules import (
    COMBINING_RULES,
    GRID_RULES,
    ITERATION_RULES,
    require_declared_place,
)
from gossamer_schedule.rules.schedule_rule import rule_record
from gossamer_testkit import script, script_names

GPU = Machine(
    grid=Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108),
    block_products=(("float32", "product"),),
)
CPU = Machine(block_products=(("float32", "product"),))
COMPETING = ((ITERATION_RULES, CPU), (COMBINING_RULES, CPU), (GRID_RULES, GPU))
"""Rules that are tried for the same programs, with a machine for them."""
NAMES = [name for name in script_names() if '"sparse_tir_level": 2' in script(name)]
INIT = re.compile(r"^( +)with T\.init\(\):\n(?:\1 +.*\n)+", re.MULTILINE)


def programs(name):
    """Return a script with few features, with its inits and without."""
    for text in {script(name): 0, INIT.sub("", script(name)): 1}:
        module = parse_module(text)
        sizes = {param.name for param in module.functions[0].params} & {"feat_size", "f", "K"}
        yield specialize(module, dict.fromkeys(sizes, 40))


@pytest.mark.parametrize("name", NAMES)
def test_of_two_rules_that_match_a_program_one_declares_the_order(name):
    for module in programs(name):
        for rules, machine in COMPETING:
            matching = [rule for rule in rules if apply_rule(rule.name, module, machine)]
            undeclared = [
                (first.name, second.name)
                for first, second in combinations(matching, 2)
                if second.name not in first.before and first.name not in second.after
            ]
            assert undeclared == []


def test_several_rules_match_some_programs():
    """The test above finds a rule without a declaration, since these have one."""
    (module, _) = programs("bsr_spmm")
    assert [rule.name for rule in ITERATION_RULES if apply_rule(rule.name, module, CPU)] == [
        "tensorized_block_spmm",
        "block_spmm",
    ]


def test_the_order_names_rules_and_gives_reasons():
    names = {rule.name for rule in RULES}
    for rule in RULES:
        for other, reason in {**rule.after, **rule.before}.items():
            assert other in names - {rule.name}
            assert re.fullmatch(r"[a-z`].*[a-z`]", reason)


@pytest.mark.parametrize(
    ("declared", "listed", "expected"),
    [
        ({"before": {"b": "fewer"}}, ["b", "block_spmv"], "after 'b', but must be tried before it: fewer"),
        ({"after": {"b": "more"}}, ["block_spmv", "b"], "before 'b', but must be tried after it: more"),
    ],
)  # fmt: skip
def test_a_rule_at_another_place_is_refused(declared, listed, expected):
    record = replace(rule_record(block_spmv), **{"before": {}, **declared})
    require_declared_place(record, listed[::-1])
    with pytest.raises(InternalError, match=expected):
        require_declared_place(record, listed)
