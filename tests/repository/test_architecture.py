"""The maps in the documents are those of the code: folders, the path of a program and of calls, caches."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import gossamer
from gossamer.operators.spmm import SCRIPT

pytestmark = pytest.mark.unserialized

MODULE = re.compile(r"/(?:src|site-packages)/(gossamer\w*/.+)$")
"""The path of a module in its distribution, in the tree as well as where a wheel is installed."""
HOP = re.compile(r"^\| \d+\. .+? \| `(.+?)` \| `([\w.]+)`", re.MULTILINE)
CELL = 250
"""The most characters of a cell of a table: longer ones are paragraphs, or several rows."""
FEATURES = 23
"""The columns of the dense operands here. No other test has as many, whose kernels would be kept."""


def section(page, heading):
    """Return the text from a heading to the next one."""
    text = page.partition(f"\n## {heading}\n")[2]
    assert text, heading
    return re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0]


@pytest.fixture(scope="module")
def overview(request):
    return (request.config.rootpath / "docs/architecture.md").read_text()


@pytest.fixture(scope="module")
def page(request):
    return (request.config.rootpath / "docs/call-path.md").read_text()


@pytest.fixture
def matrix():
    return scipy.sparse.random_array((6, 5), density=0.4, dtype=np.float32, rng=0).tocsr()


@pytest.fixture
def dense():
    return np.ones((5, FEATURES), np.float32)


def calls_of(function):
    """Call a function; return the functions of gossamer that were called, in order of their first call."""
    called = {}

    def note(frame, event, _argument):
        if event == "call":
            called.setdefault(frame.f_code, None)

    profile = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(profile)
    places = ((MODULE.search(code.co_filename), code.co_qualname) for code in called)
    return [(place[1], name) for place, name in places if place]


def hops_of(text):
    """Return the paths of modules, as `calls_of` has them, and the functions in a table of hops."""
    return [(MODULE.search(path)[1], name) for path, name in HOP.findall(text)]


def require_called_in_order(hops, called):
    assert len(hops) > 5
    missing = [hop for hop in hops if hop not in called]
    assert missing == []
    assert [called.index(hop) for hop in hops] == sorted(map(called.index, hops))


def test_the_map_of_folders_is_that_of_the_tree(root, distributions, overview):
    """Every folder and top-level module of each package, in the order of its import layers."""
    linter = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers_of = {
        container: [frozenset(layer.split(" | ")) for layer in contract["layers"]]
        for contract in linter["contracts"]
        for container in contract.get("containers", ())
    }
    for distribution in distributions:
        readme = distribution.folder / "README.md"
        assert f"(../{readme.relative_to(root).as_posix()}#folders)" in overview
        place = distribution.source.relative_to(distribution.folder).as_posix()
        _, _, table = readme.read_text().partition(f"\n| in `{place}` | |\n|---|---|\n")
        listed = re.findall(r"^\| `(.+?)` \| .+ \|$", table.partition("\n\n")[0], re.MULTILINE)
        folders = [
            path
            for path in distribution.source.rglob("*/")
            if path.name != "__pycache__" and any(item.is_file() for item in path.iterdir())
        ]
        modules = [path for path in distribution.source.glob("*.py") if path.name != "__init__.py"]
        expected = [f"{path.relative_to(distribution.source).as_posix()}/" for path in folders]
        assert sorted(listed) == sorted([*expected, *(path.name for path in modules)])
        layers = layers_of[distribution.package]
        names = [name.partition("/")[0].removesuffix(".py") for name in listed]
        places = [
            next(number for number, layer in enumerate(layers) if name in layer) for name in names
        ]
        assert places == sorted(places), distribution.package


def test_the_tables_name_files_and_functions_that_exist(root, page):
    paths = re.findall(r"`((?:packages|plugins)/.+?)`", page)
    assert [path for path in paths if not (root / path).exists()] == []
    steps = HOP.findall(page)
    assert len(steps) > 40
    for path, name in steps:
        last = name.rpartition(".")[2]
        assert re.search(rf"(def|class) {last}\b", (root / path).read_text()), (path, name)


def test_the_path_of_a_program_is_that_of_compile(page, matrix, dense, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    steps = hops_of(section(page, "`gs.compile(script)`"))
    rows, columns = matrix.shape
    sizes = {"m": rows, "n": columns, "feat_size": FEATURES, "nnz": matrix.nnz}
    arrays = {"a": matrix.data, "indptr": matrix.indptr, "indices": matrix.indices, "b": dense}
    out = np.empty((rows, FEATURES), np.float32)

    def run():
        gossamer.compile(SCRIPT.replace("csrmm", "mapped"))(**arrays, c=out, **sizes)

    called = calls_of(run)
    assert np.allclose(out, matrix @ dense)
    require_called_in_order([step for step in steps if step[1] != "Module"], called)


def test_the_hops_of_a_call_are_those_of_spmm(page, matrix, dense, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    tensor = gossamer.from_scipy(matrix)
    first, second, third = (calls_of(partial(gossamer.spmm, tensor, dense)) for _ in range(3))
    require_called_in_order(hops_of(section(page, "`gs.spmm(A, B)`, called first")), first)
    hops = hops_of(section(page, "`gs.spmm(A, B)`, called again"))
    require_called_in_order([hop for hop in hops if hop[1] != "NativePlan"], second)
    ours = [hop for hop in third if "/operator_calls/" in hop[0]]
    assert ours == hops[:2], "later calls are the first two hops"


def test_the_steps_for_a_gpu_are_those_of_the_backend(page, matrix, dense, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    target = "cuda-mma-sp:driver=interpreter"
    called = calls_of(lambda: gossamer.spmm(matrix, dense, target=target))
    require_called_in_order(hops_of(section(page, "On a GPU")), called)


def cache_names(path):
    """Return the module-level containers and memoized results of a file."""
    made = re.compile(r".*\bMemoKey\b.*\(|KernelCache\(|WeakValueDictionary\(|\{\}$", re.DOTALL)
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if made.match(ast.unparse(node.value)):
                yield ast.unparse(target)


def test_the_caches_of_a_call_are_listed(root):
    page = (root / "docs/caching.md").read_text()
    listed = [
        (name, file)
        for names, file in re.findall(r"^\| (`[^|]+`) \| `([\w/]+\.py)` \|", page, re.MULTILINE)
        for name in re.findall(r"`([\w.]+)`", names)
    ]
    assert len(listed) > 15
    for name, file in listed:
        package = "" if file.startswith("gossamer_") else "gossamer/"
        (path,) = root.glob(f"packages/*/src/{package}{file}")
        assert re.search(rf"\b{name.rpartition('.')[2]}\b", path.read_text()), name
    folder = root / "packages/gossamer/src/gossamer"
    paths = [
        *(folder / "compilation").rglob("*.py"),
        *(folder / "operator_calls").rglob("*.py"),
        *(folder / "operators").rglob("*.py"),
    ]
    for path in paths:
        place = Path(path).relative_to(folder).as_posix()
        assert {(name, place) for name in cache_names(path)} <= set(listed)
    source = root / "packages/formats/src"
    for path in (source / "gossamer_formats").rglob("*.py"):
        place = path.relative_to(source).as_posix()
        memos = re.findall(r"^(\w+)\b.*= MemoKey\b", path.read_text(), re.MULTILINE)
        assert {(name, place) for name in memos} <= set(listed)


def test_a_cell_of_a_table_can_be_read_at_a_glance(overview, page):
    rows = [line.split("|") for line in (overview + page).splitlines() if line.startswith("|")]
    assert len(rows) > 100
    assert [cell for cells in rows for cell in cells if len(cell) > CELL] == []
