"""The name of a function is a verb or a noun phrase: not a participle alone (`lowered`), nor one with a
preposition (`rounded_to_even`), nor a phrase that begins with "of"."""

from __future__ import annotations

import ast

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages/*/src", "plugins/*/src", "benchmarks", "docs", "examples", "tools")

ENDS_OF_OTHER_WORDS = ("eed", "embed", "shed")
"""Ends of verbs and nouns in -ed, such as `feed`."""

IRREGULAR = {
    "begun", "broken", "built", "chosen", "done", "drawn", "driven", "forgotten", "found",
    "frozen", "given", "gone", "grown", "held", "hidden", "kept", "known", "laid", "lost", "made", "meant",
    "overlaid", "paid", "proven", "rewritten", "said", "seen", "sent", "shown", "sold", "swept", "taken",
    "thrown", "told", "unbound", "understood", "woven", "written",
}  # fmt: skip
"""Participles that do not end in -ed. `read` and `bound` are also a verb and a noun, and may stand alone."""

PREPOSITIONS = {
    "above", "after", "and", "as", "at", "before", "below", "between", "by", "for", "from", "if", "in",
    "inside", "into", "of", "on", "once", "or", "out", "outside", "over", "to", "under", "up", "with",
    "within", "without",
}  # fmt: skip
"""Words that are not the noun to which a participle before them belongs."""

ADJECTIVES = {
    "typed": "a decorator, which is read as a property of the function",
    "ragged": "the name of a format",
}
"""Functions that may have the name of a participle, with the reasons."""

NAMED_FROM_OUTSIDE = "gossamer_testkit/corpus/oracles"
"""The functions of this folder describe results: programs of the corpus refer to them by name."""


def is_participle(word):
    return word in IRREGULAR or (word.endswith("ed") and not word.endswith(ENDS_OF_OTHER_WORDS))


def is_refused(name):
    """Whether a name is a participle without its noun, or begins with "of"."""
    first, *rest = name.strip("_").split("_")
    if first == "of":
        return True
    return is_participle(first) and (not rest or rest[0] in PREPOSITIONS)


def names_of_functions(tree):
    """The names of functions and methods; a property may be named as the state that it tells."""
    for node in nodes_of(tree, ast.FunctionDef):
        if not any("property" in ast.unparse(one) for one in node.decorator_list):
            yield node.name


def test_a_function_is_named_by_a_verb_or_a_noun(root):
    paths = [
        path for folder in FOLDERS for base in root.glob(folder) for path in base.rglob("*.py")
    ]
    assert len(paths) > 1000
    refused = {
        f"{path.relative_to(root).as_posix()}:{name}"
        for path in (*paths, root / "noxfile.py")
        if NAMED_FROM_OUTSIDE not in path.as_posix()
        for name in names_of_functions(tree_of(path.read_text()))
        if is_refused(name)
    }
    assert {place for place in refused if place.split(":")[1] not in ADJECTIVES} == set()
    assert {place.split(":")[1] for place in refused} == ADJECTIVES.keys()


STORED = {
    "of_bandwidth": "a field of measurements in the folder `results` of the benchmarks",
    "of_peak": "a field of them too",
}
"""Names that begin with "of", with the reasons."""


def names_with_of(tree):
    """The names of functions, parameters, variables and fields that begin with "of"."""
    for node in nodes_of(tree, ast.FunctionDef, ast.arg, ast.Name):
        match node:
            case ast.FunctionDef(name=name) | ast.arg(arg=name):
                yield from (name,) if name.startswith("of_") else ()
            case ast.Name(id=name, ctx=ast.Store()) if name.startswith("of_"):
                yield name


def test_no_name_begins_with_of(root):
    """A value is named by what it is: `row_gradients`, not `of_rows`."""
    paths = [
        path
        for folder in ("packages", "plugins", "benchmarks", "docs", "examples", "tools", "tests")
        for path in (root / folder).rglob("*.py")
    ]
    names = {name for path in paths for name in names_with_of(tree_of(path.read_text()))}
    assert names == STORED.keys()


def test_the_search_finds_names_with_of():
    text = "def of_a(of_b): ...\nfor of_c, d in x:\n    of_e: int = of_f"
    assert [*names_with_of(ast.parse(text))] == ["of_a", "of_b", "of_c", "of_e"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lowered", True), ("_kept", True), ("of_csr", True), ("of", True), ("rounded_to_even", True),
        ("sorted_rows", False), ("feed", False), ("offset", False), ("lower", False), ("read", False),
    ],
)  # fmt: skip
def test_participles_without_a_noun_are_refused(name, expected):
    assert is_refused(name) == expected


def test_properties_are_not_searched():
    text = "class A:\n    @property\n    def kept(self): ...\n    def lowered(self): ..."
    assert [*names_of_functions(ast.parse(text))] == ["lowered"]
