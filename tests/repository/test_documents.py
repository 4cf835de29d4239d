"""The examples in the documents run, and their links are valid."""

from __future__ import annotations

import fnmatch
import importlib.util
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from scipy import sparse

import gossamer
from gossamer_ir.errors import GossamerError
from gossamer_ir.interchange.records import Schedule
from tests.doctests.documents import PYTHON, run_examples
from tools.error_recorder import ALSO_REFUSED
from tools.generators import unsupported
from tools.generators.errors import codes_of_source, stored_examples

ROOT = Path(__file__).resolve().parents[2]
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXCERPT = re.compile(r"^<!-- excerpt: (.+?) -->\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^gossamer (.+?) +#", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
"""The file that a link leads to ("" for the same one), and the heading."""
FENCED = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def documents(root):
    places = (
        "*.md",
        "docs/**/*.md",
        "benchmarks/*.md",
        "examples/*.md",
        "packages/*/*.md",
        "plugins/*/*.md",
    )
    return [path for place in places for path in sorted(root.glob(place))]


def pytest_generate_tests(metafunc):
    if "document" in metafunc.fixturenames:
        with_code = [path for path in documents(ROOT) if PYTHON.search(path.read_text())]
        names = [path.relative_to(ROOT).as_posix() for path in with_code]
        metafunc.parametrize("document", with_code, ids=names)


def test_the_examples_run(document, tmp_path, monkeypatch):
    """The blocks of one document, in one namespace: statements, or examples with their results."""
    needs_torch = "import gossamer_torch" in document.read_text()
    if needs_torch and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed; the tests of packages/torch run these examples")
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    run_examples(document)


def test_the_commands_run(root, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    graph = sparse.random_array((90, 80), density=0.1, rng=np.random.default_rng(4))
    scipy.io.mmwrite(tmp_path / "graph.mtx", graph)
    blocks = SHELL.findall((root / "README.md").read_text())
    commands = [command for block in blocks for command in COMMAND.findall(block)]
    assert len(commands) >= 3
    for command in commands:
        words = [Path(sys.executable).parent / "gossamer", *command.split()]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout


def test_the_links_lead_somewhere(root):
    broken = [
        f"{path.name}: {target}#{heading}"
        for path in documents(root)
        for target, heading in LINK.findall(path.read_text())
        if not leads_somewhere(path, target, heading)
    ]
    assert broken == []


def leads_somewhere(document, target, heading):
    """True if the file that a link names exists and has the heading, if it names one."""
    path = document.parent / target if target else document
    if not heading:
        return path.exists()
    return path.is_file() and heading in slugs(path.read_text())


def slugs(text):
    """The names by which GitHub's links address the headings of a document: lower case, without punctuation,
    hyphens for spaces. One that occurs again has a number."""
    excerpts, seen = [], Counter()
    for heading in HEADING.findall(FENCED.sub("", text)):
        shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        excerpts.append(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return excerpts


def test_excerpts_are_those_of_the_source(root):
    excerpts = [
        excerpt for path in documents(root) for excerpt in EXCERPT.findall(path.read_text())
    ]
    assert excerpts
    for path, text in excerpts:
        assert text in (root / path).read_text()


def test_headings_are_addressed_as_on_github():
    text = "# A `b_c`, d!\n\n```sh\n# no heading\n```\n## Two  words\n## [x](y.md) - z\n### Two  words\n"
    assert slugs(text) == ["a-b_c-d", "two--words", "x---z", "two--words-1"]


def test_a_link_to_a_missing_heading_is_broken(tmp_path):
    document = tmp_path / "a.md"
    document.write_text("# Here\n")
    assert leads_somewhere(document, "", "here")
    assert leads_somewhere(document, "a.md", "here")
    assert not leads_somewhere(document, "a.md", "there")
    assert not leads_somewhere(document, "b.md", "here")


def test_what_is_refused_is_listed():
    """Every code of an unsupported construct in the source has an entry, and every entry a code."""
    raised = codes_of_source(kind="UnsupportedError") | {*ALSO_REFUSED}
    assert len(raised) > 50
    assert unsupported.without_entry(raised) == []
    listed = unsupported.patterns()
    assert [
        code for code in listed if not any(fits(code, raised_code) for raised_code in raised)
    ] == []
    assert unsupported.without_entry(["lower.a_refusal_that_is_new"]) != []


def test_every_listed_refusal_is_met_by_a_program():
    """The programs are those of the examples of errors, which `test_generated.py` runs."""
    examples = stored_examples()
    met = {
        code: row
        for code, row in examples.items()
        if any(fits(code, p) for p in unsupported.patterns())
    }
    assert [p for p in unsupported.patterns() if not fnmatch.filter(met, p)] == []
    without = {code for code, row in met.items() if "program" not in row} - {*unsupported.FOREIGN}
    assert without <= unsupported.WITHOUT_PROGRAM.keys()
    refused = {code for code, row in examples.items() if "program" in row}
    assert unsupported.without_entry(refused - {*unsupported.FOREIGN}) == []


def test_compile_says_what_the_list_says_that_it_says():
    rows = stored_examples()
    assert len(unsupported.BY_COMPILE) > 5
    for code in sorted(unsupported.BY_COMPILE):
        with pytest.raises(GossamerError) as caught:
            gossamer.compile(rows[code]["program"], schedule=Schedule())
        assert caught.value.code == code


def fits(code, pattern):
    return fnmatch.fnmatch(code, pattern) or fnmatch.fnmatch(pattern, code)


def test_every_decision_says_what_and_why(root):
    records = sorted(root.glob("docs/decisions/[0-9]*.md"))
    assert records
    for number, path in enumerate(records, 1):
        text = path.read_text()
        assert path.name.startswith(f"{number:04d}-")
        assert text.startswith(f"# {number}. ")
        assert "## Decision\n" in text
        assert "## Why\n" in text
