"""The recipe "Add a rule" in docs/extending: random programs match each rule, and each option of a CPU is
documented; rules and decisions take keywords after the second argument."""

from __future__ import annotations

import ast
import re
from dataclasses import replace as replace_fields
from itertools import product
from random import Random

import pytest
from msgspec.structs import replace

from gossamer.operators.matmul_24 import SCRIPT
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Grid, Machine
from gossamer_machine.cpu_options import CPU_OPTIONS
from gossamer_schedule.rules import RULES, schedule_report
from gossamer_schedule.rules.ordered_rules import ORDERED_RULES
from gossamer_schedule.rules.schedule_rule import RuleFlags
from tests.conventions.syntax_trees import tree_of
from tests.fuzzing.checks.disagreements import Verdict, verdict_of
from tests.fuzzing.programs.draw_program import draw_program
from tests.fuzzing.programs.handwritten import parsed, usable, with_arrays
from tests.fuzzing.schedules.draw_schedule import replayed
from tests.recipes.recipe_pages import recipe
from tools.generators.rules import listed_rule, with_listed_rules

pytestmark = pytest.mark.unserialized

MAX_DRAWN = 400
"""Random programs of each kind that are drawn until each rule has matched one; the rarest matches one of
150."""
MACHINES = (Machine(), Machine(grid=Grid(32, 1024, 49152, 108)))
"""A CPU, and a machine that runs grids of threads."""
NO_INTRINSICS = "the machines have no intrinsics for products of blocks"
WITHOUT_RANDOM_PROGRAMS = {
    "dense_rows": "it matches a part of a program only, whose rule is `fused_rows`",
    "grid_block_sddmm": NO_INTRINSICS,
    "tensorized_block_spmm": NO_INTRINSICS,
}
"""Rules that no random program is meant to match, with the reasons."""


def random_programs():
    """Yield programs with constant sizes: drawn ones, of a pattern of a rule or not, and scripts with random
    arrays."""
    modules = [parse_module(SCRIPT), *map(parsed, usable())]
    for number in range(MAX_DRAWN):
        rng = Random(number)
        yield with_constant_sizes(draw_program(rng, is_common=True))
        yield with_constant_sizes(draw_program(rng, is_common=False))
        program = with_arrays(modules[number % len(modules)], rng, lengths=LENGTHS)
        if program is not None and program.module.stage == "coordinate":
            yield with_constant_sizes(program)


LENGTHS = (3, 4, 8)
"""The lengths of axes in scripts: their rows are in the lanes of vectors."""


def with_constant_sizes(program):
    sizes = {name: size for name, size in program.sizes.items() if isinstance(size, int)}
    others = {name: size for name, size in program.sizes.items() if name not in sizes}
    return replace_fields(program, module=specialize(program.module, sizes), sizes=others)


def test_random_programs_match_each_rule_and_mean_the_same_after_it():
    """The first program of each rule is interpreted at each stage, with the schedule of the rule."""
    names = {rule.name for rule in RULES}
    assert WITHOUT_RANDOM_PROGRAMS.keys() <= names
    missing = names - WITHOUT_RANDOM_PROGRAMS.keys()
    for program, machine in product(random_programs(), MACHINES):
        report = schedule_report(program.module, machine)
        if report.rule in missing:
            missing.remove(report.rule)
            verdict = verdict_of(program, schedule=replayed(report.schedule))
            assert verdict == Verdict(), f"{report.rule}: {verdict}\n{program!r}"
        if not missing:
            break
    assert not missing, (
        f"no random program matches {', '.join(sorted(missing))}: draw some in "
        "tests/fuzzing/programs/rule_patterns.py, or add the reason to WITHOUT_RANDOM_PROGRAMS"
    )


LIBRARY = "packages/schedule/src/gossamer_schedule/rules/library"
SIGNATURE = "(module: Module, context: RuleContext) -> PatternMatch | None"


def words_of_names(root):
    """Return the words of the names of rules that the recipe lists, for each part of a name."""
    _, _, table = recipe(root, "Add a rule").partition("| part of the name | words |\n|---|---|\n")
    rows = [line.split(" | ") for line in table.partition("\n\n")[0].splitlines()]
    return {part.removeprefix("| "): re.findall(r"`(\w+)`", words) for part, words in rows}


def test_names_of_rules_are_made_of_the_words_of_the_recipe(root):
    """`grid` is the first word of the rules for grids only, and rules for several iterations have words of
    their own."""
    words = words_of_names(root)
    machine, intrinsic, loops, operations, single_kinds, combined = (
        "|".join(words[part]) for part in words
    )
    single = re.compile(rf"(?:{intrinsic})?_?(?:{loops})_(?:{operations})|{single_kinds}")
    wrong = [
        rule.name
        for rule in ORDERED_RULES
        if not (re.compile(combined) if rule.combines_rules else single).fullmatch(
            rule.name.removeprefix(f"{machine}_") if rule.is_for_grids else rule.name
        )
        or rule.name.startswith(f"{machine}_") != rule.is_for_grids
    ]
    assert wrong == []
    names = "_".join(rule.name for rule in ORDERED_RULES)
    assert [word for listed in words.values() for word in listed if word not in names] == []


def attributes_of(tree):
    """Return the names of the attributes and functions that a module reads."""
    nodes = list(ast.walk(tree))
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return read | {node.id for node in nodes if isinstance(node, ast.Name)}


@pytest.mark.parametrize("rule", [*RULES], ids=lambda rule: rule.name)
def test_the_file_of_a_rule_is_what_the_recipe_says(root, rule):
    tree = tree_of((root / LIBRARY / f"{rule.name}.py").read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    function = functions[rule.name]
    (decorator,) = function.decorator_list
    assert ast.unparse(decorator).startswith("schedule_rule(")
    assert f"({ast.unparse(function.args)}) -> {ast.unparse(function.returns)}" == SIGNATURE
    read = attributes_of(tree)
    assert {"new_trace", "PatternMatch"} <= read, "it plans steps in a trace of its context"
    assert ("grid" in read) == rule.is_for_grids
    assert ("several_iterations" in read) == rule.combines_rules
    assert bool({"sibling_rules", "iteration_rules"} & read) == rule.combines_rules
    # A rule that combines others sets what its siblings read.
    assert rule.combines_rules or ("is_sibling" in read) == rule.handles_siblings


def test_the_line_of_a_rule_has_the_flags_of_its_decorator():
    """A rule is listed by name; its flags are generated."""
    (block_spmv,) = (rule for rule in RULES if rule.name == "block_spmv")
    flagged = replace(block_spmv, handles_siblings=True, is_for_grids=True)
    assert listed_rule(block_spmv) == '    OrderedRule("block_spmv"),\n'
    assert (
        listed_rule(flagged)
        == '    OrderedRule("block_spmv", handles_siblings=True, is_for_grids=True),\n'
    )
    for rule, listed in zip(RULES, ORDERED_RULES, strict=True):
        flags = RuleFlags.__struct_fields__
        assert [getattr(rule, flag) for flag in flags] == [getattr(listed, flag) for flag in flags]


def test_a_list_of_rules_without_its_tuple_is_refused():
    first, *_ = RULES
    listed = f"ORDERED_RULES = (\n{listed_rule(first)})\n"
    assert with_listed_rules("ORDERED_RULES = (\n)\n", [first]) == listed
    with pytest.raises(ValueError, match="no tuple ORDERED_RULES"):
        with_listed_rules("RULES = (\n)\n", RULES)


def test_the_recipe_explains_every_flag_of_a_rule(root):
    text = recipe(root, "Add a rule")
    assert [flag for flag in RuleFlags.__struct_fields__ if f"| `{flag}=True` |" not in text] == []


def test_each_option_of_a_cpu_is_in_the_table_of_the_backend(root):
    page = (root / "plugins/generic-cpu/README.md").read_text()
    rows = re.findall(r"^\| ((?:`\w+=`(?:, )?)+) \|", page, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)=`", row)}
    assert {option.name for option in CPU_OPTIONS} - listed == set()


def test_rules_and_decisions_take_keywords_after_the_second_argument(root):
    """So that a call says which of several loops, sizes and records is which."""
    folder = root / "packages/schedule/src/gossamer_schedule/rules"
    functions = [
        (f"{path.stem}:{node.name}", [arg.arg for arg in node.args.args])
        for name in ("library", "decisions")
        for path in (folder / name).rglob("*.py")
        for node in tree_of(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    ]
    assert len(functions) > 100
    assert [name for name, args in functions if len(args) > 2] == []
