"""The parts of the documentation site that need no site generator: API pages, error codes, notebooks."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
import re

import numpy as np
import pytest

ADDRESSED = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def part(request):
    """A function that loads a module of docs/site by its name."""

    def load(name):
        path = request.config.rootpath / f"docs/site/{name}.py"
        spec = importlib.util.spec_from_file_location(f"site_{name}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_every_public_module_is_in_the_reference_once(part, root):
    folders = [*root.glob("packages/*/src"), *root.glob("plugins/*/src")]
    paths = [path.relative_to(folder) for folder in folders for path in folder.rglob("*.py")]
    modules = [path.with_suffix("").parts for path in paths]
    names = [".".join(parts).removesuffix(".__init__") for parts in modules]
    public = sorted(name for name in names if "._" not in name)
    pages = {place: text for place, text in part("api").pages(root) if "README" not in place}
    assert len(public) > 300
    assert sorted(name for text in pages.values() for name in ADDRESSED.findall(text)) == public


def test_every_exported_name_is_in_the_reference(part, root, distributions):
    indexes = {place: text for place, text in part("api").pages(root) if "README" in place}
    for distribution in distributions:
        if "torch" in distribution.needs and importlib.util.find_spec("torch") is None:
            continue
        package = importlib.import_module(distribution.package)
        exported = [name for name in getattr(package, "__all__", ()) if not name.startswith("_")]
        if exported:
            assert repr(exported) in indexes[f"api/{distribution.package}/README.md"]


def test_every_recorded_error_code_has_an_entry(part, root):
    rows = json.loads((root / "tests/golden/errors.json").read_text())
    entries = re.findall(r"^`([\w.]+)`$", part("errors").page(root), re.MULTILINE)
    assert sorted(entries) == sorted({row["code"] for row in rows})


def test_every_tutorial_is_a_notebook(part, root):
    places = [place for place, _ in part("notebooks").notebooks(root)]
    pages = sorted(path.stem for path in root.glob("docs/tutorials/*.md") if path.stem != "README")
    assert len(pages) >= 3
    assert places == [f"notebooks/{page}.ipynb" for page in [*pages, "spmm-step-by-step"]]


def test_a_notebook_runs_and_shows_what_it_holds(part, root, tmp_path, monkeypatch):
    """Runs cell by cell, as Jupyter does: the value of a last expression is the result of the cell."""
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    contents = dict(part("notebooks").notebooks(root))
    book = json.loads(contents["notebooks/first-kernel.ipynb"])
    names = {"__name__": "__main__"}
    shown = 0
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert executed(cell, names) == "".join(map(text_of, cell["outputs"]))
            shown += len(cell["outputs"])
    assert shown > 8
    assert np.array_equal(names["y"], names["A"] @ names["x"])


def executed(cell, names):
    """The output of a cell, and the value of its last expression."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        for stmt in stmts_of("".join(cell["source"])):
            exec(compile(stmt, "cell", "single"), names)
    return shown.getvalue()


def stmts_of(source):
    """The statements of a cell as texts that end with a line break."""
    return [f"{ast.get_source_segment(source, node)}\n" for node in ast.parse(source).body]


def text_of(output):
    if output["output_type"] == "stream":
        return "".join(output["text"])
    return "".join(output["data"]["text/plain"]) + "\n"


def test_a_notebook_has_no_output_that_varies(part):
    book = part("notebooks").notebook(
        "# Title\n\n```python\n>>> 1 + 1\n2\n>>> print(3)  # doctest: +ELLIPSIS\n...\n```\n\n[a](b.md)\n"
    )
    kinds = [cell["cell_type"] for cell in book["cells"]]
    assert kinds == ["markdown", "code", "code", "markdown"]
    first, second = book["cells"][1:3]
    assert first["outputs"][0]["data"] == {"text/plain": ["2"]}
    assert (second["source"], second["outputs"]) == (["print(3)"], [])
    assert book["cells"][3]["source"] == ["a"]
