"""Examples in the documents run, their links lead somewhere, generated pages are up to date."""

from __future__ import annotations

import importlib.util
import re

import pytest

PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def documents(root):
    return [root / "README.md", *sorted(root.glob("docs/**/*.md")), root / "benchmarks/README.md"]


def test_the_examples_run(root):
    examples = [
        (path, found) for path in documents(root) for found in PYTHON.findall(path.read_text())
    ]
    assert any(path.name == "README.md" for path, _ in examples)
    names = {}
    for path, example in examples:
        exec(compile(example, str(path), "exec"), names)


def test_the_links_lead_somewhere(root):
    broken = [
        f"{path.name}: {target}"
        for path in documents(root)
        for target in LINK.findall(path.read_text())
        if not (path.parent / target).exists()
    ]
    assert broken == []


def test_the_language_reference_is_up_to_date(root):
    spec = importlib.util.spec_from_file_location("generate", root / "docs/generate_language.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    if (root / "docs/language.md").read_text() != generate.page():
        pytest.fail("run: python docs/generate_language.py")


def test_every_decision_says_what_and_why(root):
    records = sorted(root.glob("docs/decisions/[0-9]*.md"))
    assert records
    for number, path in enumerate(records, 1):
        text = path.read_text()
        assert path.name.startswith(f"{number:04d}-")
        assert text.startswith(f"# {number}. ")
        assert "## Decision\n" in text
        assert "## Why\n" in text
