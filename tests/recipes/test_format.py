"""The recipe "Add a format" in docs/extending is complete: what operators, files and other libraries do with
a format follows from its record and its description. No other code names a format but CSR, to which all are
converted."""

from __future__ import annotations

import ast
import re

import pytest

from gossamer_formats import format_names
from gossamer_formats.internal_api import COMPOSABLE_FORMATS
from gossamer_testkit import corpus_names
from tests.conventions.syntax_trees import nodes_of, tree_of
from tests.fuzzing.programs.decomposed import FORMATS, NO_PARTS
from tests.recipes.recipe_pages import recipe

pytestmark = pytest.mark.unserialized

CONVERTED_TO = "csr"
MODELS = "packages/tune/src/gossamer_tune/model"
"""The models of costs, one file for each format ("Add a cost model")."""
RECORDS = (
    "packages/formats/src/gossamer_formats/descriptions",
    "packages/formats/src/gossamer_formats/decomposition/library",
    "packages/formats/src/gossamer_formats/registry/composable_names.py",
)
"""The formats themselves, the first row of the list, and the generated list of composable ones."""
NAMED = {
    # Makes a matrix to show, with the format of its arrays.
    "packages/gossamer/src/gossamer/cli/commands/formats.py": {"coo"},
    # Files with a line for each element, and elements of a dense array, are coordinates.
    "packages/formats/src/gossamer_formats/tensors/standard_formats.py": {"coo"},
    "packages/testkit/src/gossamer_testkit/conformance/formats.py": {"coo"},
    # A pattern such as 2:4 is another name for it.
    "packages/formats/src/gossamer_formats/tensors/prune.py": {"n_m"},
    # The contender `gossamer_sell` is about this format.
    "benchmarks/contenders/gossamer.py": {"sell"},
    # The product whose instructions are counted is one over this format.
    "benchmarks/instruction_counts/counted_operators.py": {"tiled_csr"},
    # Files of arrays, for the problem with blocks.
    "benchmarks/operator_case.py": {"bsr"},
    # Dense tensor cores multiply blocks.
    "packages/gossamer/src/gossamer/operators/n_m_products/block_products.py": {"bsr"},
}
"""Files that name a format for a reason that does not concern a new one."""
LISTED = {
    "packages/testkit/src/gossamer_testkit/corpus/oracles/by_name.py",
    "benchmarks/parts/processes/choice.py",
    "benchmarks/parts/processes/conversions.py",
}
"""Files with a line for each format that the list has."""
WITHOUT_PROGRAM = {
    "most other programs of the corpus are over it": ("csr",),
    "operators convert it to CSR, and tests of `packages/gossamer` compile what is written over it": (
        "coo", "csc", "csf", "dbsr", "dia", "ell3d", "ell_rows", "n_m", "padded_csr", "ragged",
        "sr_bcrs", "v_n_m",
    ),
    "its products have tests of their own, with rows in the lanes of vectors": (
        "blocked_sell", "sell", "sliced_dia",
    ),
}  # fmt: skip
"""The formats without a program of the corpus, by the reason."""
SOURCES = ("packages/*/src", "plugins/*/src", "benchmarks")


def formats_named_in(text, names):
    """The names of formats among the constants of a program, without those in docstrings."""
    constants = nodes_of(tree_of(text), ast.Constant)
    return sorted({node.value for node in constants if isinstance(node.value, str)} & names)


def test_no_code_beside_the_record_of_a_format_names_it(root):
    names = {*format_names(), *COMPOSABLE_FORMATS.names()} - {CONVERTED_TO}
    folders = [root / folder for folder in (MODELS, *RECORDS)]
    named = {
        path.relative_to(root).as_posix(): {*formats_named_in(path.read_text(), names)}
        for source in SOURCES
        for path in root.glob(f"{source}/**/*.py")
        if not any(folder in (path, *path.parents) for folder in folders)
    }
    assert {
        path: formats for path, formats in named.items() if formats and path not in LISTED
    } == NAMED
    text = recipe(root, "Add a format")
    assert all(path in text for path in (*LISTED, RECORDS[0]))
    assert formats_named_in('match name:\n    case "bsr":\n        "docs of sell"', names) == [
        "bsr"
    ]


def test_the_document_of_formats_names_each(root):
    words = {*re.findall(r"\w+", (root / "docs" / "formats.md").read_text().lower())}
    assert {*format_names(), *COMPOSABLE_FORMATS.names()} - words == set()


def test_random_parts_are_stored_in_each_format(root):
    assert {*FORMATS, *NO_PARTS} == {*format_names()}
    drawn = (root / "tests" / "fuzzing" / "programs" / "decomposed.py").read_text()
    composable = {*COMPOSABLE_FORMATS.names()}
    assert {*formats_named_in(drawn, composable)} == composable


def test_each_model_of_costs_is_about_one_format(root):
    names = {*format_names(), *COMPOSABLE_FORMATS.names()}
    paths = [*(root / MODELS).rglob("*_times_*.py")]
    assert len(paths) > 5
    for path in paths:
        assert len(formats_named_in(path.read_text(), names)) == 1, path.name


def test_a_format_has_a_program_of_the_corpus_or_a_reason_to_have_none():
    """Programs over other formats are compiled by every backend, on edge cases of matrices."""
    in_corpus = {
        name
        for name in format_names()
        if any(is_about(name, program) for program in corpus_names())
    }
    without = {name for names in WITHOUT_PROGRAM.values() for name in names}
    assert in_corpus.isdisjoint(without)
    missing = {*format_names()} - in_corpus - without
    assert not missing, (
        f"no program of the corpus is over {', '.join(sorted(missing))}: add one to "
        "tools/corpus_programs/other_formats.py, or the reason to WITHOUT_PROGRAM"
    )


def is_about(format, program):
    """Whether the name of a program of the corpus begins with that of a format."""
    return program.startswith((f"{format}_", f"{format}mm_", f"{format}mv_"))
