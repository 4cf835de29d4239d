"""Each term of the glossary is a word of the sources: one that nothing uses explains nothing."""

from __future__ import annotations

import re

import pytest

from tests.conventions.test_unique_names import terms_of
from tests.conventions.test_words import SHORT

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages/*/src", "plugins/*/src", "benchmarks", "tools")


def words_of(text):
    """The words of a text in small letters, with a space before each: `row_panel`, `RowPanel` and "row panel"
    have the same words. Other punctuation separates words that do not form a term."""
    separated = re.sub("(?<=[a-z])(?=[A-Z])", " ", text).lower()
    return re.sub(r"[\s_:-]+", " ", re.sub(r"[^a-z0-9\s_:-]+", " | ", f" {separated}"))


def unused_terms(terms, text):
    """The terms whose words do not follow each other in the words of a text. Words of nodes, such as
    "statement", may be short there; the last word may have an ending."""
    return sorted(term for term in terms if not any(one in text for one in spellings_of(term)))


def spellings_of(term):
    """The words of a term, and these with the short words of nodes."""
    words = words_of(term)
    return {words, " ".join(SHORT.get(word, word) for word in words.split(" "))}


def test_each_term_of_the_glossary_is_used(root):
    terms = terms_of((root / "docs/glossary.md").read_text()) - {"term"}
    assert "fiber" in terms
    text = "".join(
        words_of(path.read_text()) for folder in FOLDERS for path in root.glob(f"{folder}/**/*.py")
    )
    assert unused_terms(terms, text) == []


def test_terms_are_found_in_all_spellings():
    text = words_of(
        'class StmtHandle: ...\nrow_panels = "an N:M pattern, and sub-fibers"\nf(search, cursor)'
    )
    terms = {"statement handle", "row panel", "n:m pattern", "sub-fiber", "search cursor", "nel"}
    assert unused_terms(terms, text) == ["nel", "search cursor"]
