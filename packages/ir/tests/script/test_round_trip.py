"""`parse(print(m)) == m` for generated modules of every stage and for format descriptions."""

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from module_strategies import STAGES, formats, modules

from gossamer_ir import nodes
from gossamer_ir.interchange.serialization import dumps, loads
from gossamer_ir.nodes import FormatDescription, IndexMap, Node
from gossamer_ir.script import (
    parse_format,
    parse_module,
    print_format,
    print_module,
    print_with_places,
)
from gossamer_ir.traversal.equality import structural_equal, structural_hash
from gossamer_ir.traversal.walk import walk

_SETTINGS = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("stage", STAGES)
def test_printed_module_parses_to_an_equal_module(stage):
    @_SETTINGS
    @given(modules(stage))
    def check(module):
        assert parse_module(print_module(module)) == module

    check()


@_SETTINGS
@given(modules())
def test_encoded_module_decodes_to_an_equal_module(module):
    assert loads(dumps(module)) == module


@_SETTINGS
@given(modules())
def test_a_module_and_its_script_are_structurally_equal(module):
    again = parse_module(print_module(module))
    assert structural_equal(again, module)
    assert structural_hash(again) == structural_hash(module)


@_SETTINGS
@given(formats())
def test_printed_format_parses_to_an_equal_format(description):
    assert parse_format(print_format(description)) == description


@_SETTINGS
@given(modules())
def test_every_statement_and_expression_has_a_span_in_the_printed_text(module):
    printed = print_with_places(module)
    lines = printed.text.splitlines()
    for place, span in printed.spans.items():
        assert span.line <= span.end_line <= len(lines), place
        assert lines[span.line - 1][span.column :].strip(), place


def test_generator_covers_every_node_kind():
    kinds = {
        kind
        for kind in vars(nodes).values()
        if isinstance(kind, type) and issubclass(kind, Node) and kind is not Node
    }
    seen = set()

    def shows_the_last(module):
        seen.update(type(node) for node in walk(module))
        return kinds - seen == {FormatDescription, IndexMap}

    # Some kinds are rare. Hypothesis takes constants of the sources, so it draws others when these change.
    until_then = settings(_SETTINGS, max_examples=10_000, phases=[Phase.generate])
    find(modules(), shows_the_last, settings=until_then)
