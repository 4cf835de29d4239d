"""The examples in the documents run, their links are valid, and generated pages are up to date."""

from __future__ import annotations

import fnmatch
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from scipy import sparse

import gossamer
from gossamer_ir.errors import GossamerError
from gossamer_ir.interchange.records import Schedule
from tests.error_recorder import ALSO_REFUSED
from tests.examples import PYTHON, run_examples
from tests.test_errors import codes_of

ROOT = Path(__file__).resolve().parents[1]
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^gossamer (.+?) +#", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def documents(root):
    places = ("*.md", "docs/**/*.md", "benchmarks/*.md", "packages/*/*.md", "plugins/*/*.md")
    return [path for place in places for path in sorted(root.glob(place))]


def pytest_generate_tests(metafunc):
    if "document" in metafunc.fixturenames:
        with_code = [path for path in documents(ROOT) if PYTHON.search(path.read_text())]
        names = [path.relative_to(ROOT).as_posix() for path in with_code]
        metafunc.parametrize("document", with_code, ids=names)


def test_the_examples_run(document, tmp_path, monkeypatch):
    """The blocks of one document, in one namespace: statements, or examples with their results."""
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
        f"{path.name}: {target}"
        for path in documents(root)
        for target in LINK.findall(path.read_text())
        if not (path.parent / target).exists()
    ]
    assert broken == []


def generator(root, name):
    """The module that generates a page."""
    path = root / f"docs/generate_{name}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("name", ["language", "accepted", "command_line", "unsupported"])
def test_a_generated_page_is_up_to_date(root, name):
    path = root / f"docs/{name.replace('_', '-')}.md"
    if path.read_text() != generator(root, name).page():
        pytest.fail(f"run: python docs/generate_{name}.py")


def test_the_tables_of_passes_are_up_to_date(root):
    passes = generator(root, "passes")
    for path in passes.HEADERS:
        if path.read_text() != passes.with_table(path):
            pytest.fail("run: python docs/generate_passes.py")


def test_the_pictures_are_up_to_date(root):
    drawn = {f"{name}.svg": text for name, text in generator(root, "pictures").pictures().items()}
    stored = {path.name: path.read_text() for path in root.glob("docs/pictures/*.svg")}
    if drawn != stored:
        pytest.fail("run: python docs/generate_pictures.py")


def test_what_is_refused_is_listed(root):
    """Every code of an unsupported construct in the source has an entry, and every entry a code."""
    sources = (*root.glob("packages/*/src/**/*.py"), *root.glob("plugins/*/src/**/*.py"))
    raised = {code for path in sources for code in codes_of(path, kind="UnsupportedError")}
    raised |= {*ALSO_REFUSED}
    generate = generator(root, "unsupported")
    assert len(raised) > 50
    assert generate.without_entry(raised) == []
    listed = generate.patterns()
    assert [code for code in listed if not any(fits(code, found) for found in raised)] == []
    assert generate.without_entry(["lower.a_refusal_that_is_new"]) != []


def test_every_listed_refusal_is_met_by_a_program(root):
    """The programs are those of the examples of errors, which `test_errors.py` runs."""
    generate = generator(root, "unsupported")
    examples = generate.rows()
    met = {
        code: row
        for code, row in examples.items()
        if any(fits(code, p) for p in generate.patterns())
    }
    assert [p for p in generate.patterns() if not fnmatch.filter(met, p)] == []
    without = {code for code, row in met.items() if "program" not in row} - {*generate.FOREIGN}
    assert without <= generate.WITHOUT_PROGRAM.keys()
    refused = {code for code, row in examples.items() if "program" in row}
    assert generate.without_entry(refused - {*generate.FOREIGN}) == []


def test_compile_says_what_the_list_says_that_it_says(root):
    generate = generator(root, "unsupported")
    rows = generate.rows()
    for code in sorted(generate.BY_COMPILE):
        with pytest.raises(GossamerError) as caught:
            gossamer.compile(rows[code]["program"], schedule=Schedule())
        assert caught.value.code == code


def fits(code, pattern):
    return fnmatch.fnmatch(code, pattern) or fnmatch.fnmatch(pattern, code)


def test_the_map_of_folders_is_that_of_the_tree(root, distributions):
    """Every folder and top-level module of each package, in the order of its import layers."""
    page = (root / "docs/architecture.md").read_text()
    linter = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers_of = {
        container: [frozenset(layer.split(" | ")) for layer in contract["layers"]]
        for contract in linter["contracts"]
        for container in contract.get("containers", ())
    }
    for found in distributions:
        place = found.source.relative_to(root).as_posix()
        table = page.partition(f"\n### `{found.package}`\n\n| in `{place}` | |\n|---|---|\n")[2]
        listed = re.findall(r"^\| `(.+?)` \| .+ \|$", table.partition("\n\n")[0], re.MULTILINE)
        folders = [
            path
            for path in found.source.rglob("*/")
            if path.name != "__pycache__" and any(item.is_file() for item in path.iterdir())
        ]
        modules = [path for path in found.source.glob("*.py") if path.name != "__init__.py"]
        expected = [f"{path.relative_to(found.source).as_posix()}/" for path in folders]
        assert sorted(listed) == sorted([*expected, *(path.name for path in modules)])
        layers = layers_of[found.package]
        names = [name.partition("/")[0].removesuffix(".py") for name in listed]
        places = [next(at for at, layer in enumerate(layers) if name in layer) for name in names]
        assert places == sorted(places), found.package


def test_the_path_of_a_program_leads_through_files_that_exist(root):
    page = (root / "docs/architecture.md").read_text()
    paths = re.findall(r"`((?:packages|plugins)/.+?)`", page)
    assert [path for path in paths if not (root / path).exists()] == []
    steps = re.findall(r"^\| \d+\. .+? \| `(.+?)` \| `(\w+)", page, re.MULTILINE)
    assert len(steps) > 10
    for path, name in steps:
        assert re.search(rf"(def|class) {name}\b", (root / path).read_text()), (path, name)


def test_every_decision_says_what_and_why(root):
    records = sorted(root.glob("docs/decisions/[0-9]*.md"))
    assert records
    for number, path in enumerate(records, 1):
        text = path.read_text()
        assert path.name.startswith(f"{number:04d}-")
        assert text.startswith(f"# {number}. ")
        assert "## Decision\n" in text
        assert "## Why\n" in text
