"""Sentences of docstrings and comments have a subject and a verb: none begins with "Of ...", and one that
begins with "What ..." is a question."""

from __future__ import annotations

import ast
import re
from itertools import chain

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages", "plugins", "benchmarks", "docs", "examples", "tools", "tests")
HEADLESS = re.compile(r"(?:^|[.:;!?] |\* )((?:Of|What) [^.?!]*[.?!]?)")
COMMENT = re.compile(r"(?:^ *|  )# (.*)")


def comments(text):
    """The comments of a source, those in adjacent lines as one."""
    joined = []
    for line in text.splitlines():
        comment = COMMENT.search(line)
        if comment is not None:
            joined.append(comment[1])
        elif joined:
            yield " ".join(joined)
            joined = []
    yield " ".join(joined)


def paragraphs(tree):
    """The paragraphs of the docstrings of a module and of all that it defines, without examples."""
    for node in nodes_of(tree, ast.Expr):
        match node.value:
            case ast.Constant(value=str(text)):
                for paragraph in re.split(r"\n\s*\n", text):
                    if ">>>" not in paragraph:
                        yield " ".join(paragraph.split())


def headless_sentences(text):
    """The sentences of a source that begin with a preposition or with a clause."""
    for paragraph in chain(comments(text), paragraphs(tree_of(text))):
        for sentence in HEADLESS.findall(paragraph):
            if not sentence.endswith("?"):
                yield sentence


def test_a_sentence_of_a_docstring_or_a_comment_has_a_subject(root):
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*.py")]
    assert len(paths) > 2000
    by_path = {
        path.relative_to(root).as_posix(): sentences
        for path in paths
        if (sentences := [*headless_sentences(path.read_text())])
    }
    assert by_path == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"""Of a matrix, the rows."""', ["Of a matrix, the rows."]),
        ('"""Rows.\n\n    What they have\n    is stored.\n    """', ["What they have is stored."]),
        ("x = 1  # One. Of\n# two, both.\n", ["Of two, both."]),
        ('"""What is it?"""\n# Whatever it is. Offsets are sorted.', []),
        ('"""Rows.\n\n    >>> f("a. What b")\n    """', []),
    ],
)
def test_the_search_finds_sentences_without_a_subject(text, expected):
    assert [*headless_sentences(text)] == expected
