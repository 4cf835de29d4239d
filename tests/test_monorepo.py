"""Every distribution is complete, declares what it imports, and imports only lower layers."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import sys
import tomllib
from collections import Counter
from functools import cache
from itertools import chain

import pytest

import gossamer
from gossamer.kernel_cache import DISTRIBUTIONS

pytestmark = pytest.mark.unserialized

MAY_NEED = {
    "gossamer-ir": set(),
    "gossamer-formats": {"gossamer-ir"},
    "gossamer-schedule": {"gossamer-ir"},
    "gossamer-lower": {"gossamer-ir"},
    "gossamer-backend": {"gossamer-ir"},
    "gossamer-llvm": {"gossamer-ir"},
    "gossamer-testkit": {"gossamer-ir", "gossamer-backend", "gossamer-formats"},
    "gossamer-tune": {"gossamer-ir"},
    "gossamer-generic-cpu": {"gossamer-ir", "gossamer-backend", "gossamer-llvm"},
}
END_TO_END = {"gossamer": {"checks", "processes", "programs", "published_schedules", "schedules"}}
"""Folders of tests that no folder of the sources corresponds to."""
TESTED_IN = {
    "gossamer": {"cli/comparison/baselines": "cli/comparison/test_accuracy_and_timing.py"},
    "gossamer-formats": {
        "counterparts": "tensors/test_scipy_conversion.py",
        **{
            f"conversion/{name}": "conversion/test_convert.py"
            for name in ("maps", "numpy", "target")
        },
        "conversion/results": "conversion/test_convert_by_kernels.py",
    },
    "gossamer-ir": {
        "interpret/memory": "interpret/test_formats.py",
        "interpret/expressions": "interpret/test_expressions.py",
        "interpret/statements": "interpret/test_statements.py",
        "verify/declarations": "verify/test_refused_modules.py",
        "verify/expressions": "verify/test_refused_modules.py",
        "verify/stages": "verify/test_stages.py",
        "verify/statements": "verify/test_refused_modules.py",
        **{
            f"script/parser/{name}": "script/parser/test_parse_errors.py"
            for name in ("arguments", "declarations", "expressions", "state", "statements")
        },
    },
    "gossamer-llvm": {
        "control": "emitter/test_emitted_ir.py",
        "parallel": "emitter/test_emitted_ir.py",
    },
    "gossamer-lower": {"bounds/checks": "bounds/test_insert_bounds_checks.py"},
    "gossamer-testkit": {
        "corpus/inputs": "corpus/test_corpus.py",
        "corpus/oracles": "corpus/test_corpus.py",
    },
}
"""The first file to look at for each folder of sources without a folder of tests. The folder `helpers` of a
folder is tested with it."""


def name_of(requirement):
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower()


def needs(distribution):
    return {name_of(requirement) for requirement in distribution.project["dependencies"]}


def extras_of(distribution):
    """What the distribution can use: the requirements of its extras, but for the tests."""
    extras = distribution.project["optional-dependencies"]
    return {name_of(item) for extra, listed in extras.items() if extra != "test" for item in listed}


def imported_packages(path, *, when_imported=False):
    """The packages that a file imports; `when_imported`, only those outside of functions, and not for types
    only."""
    nodes = [ast.parse(path.read_text())]
    for node in nodes:
        if when_imported and (isinstance(node, ast.FunctionDef) or is_for_types_only(node)):
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


def is_for_types_only(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def test_it_is_whole(distribution):
    readme = (distribution.folder / "README.md").read_text()
    assert readme.startswith(f"# {distribution.name}\n")
    assert "```python" in readme, "the README has no example"
    assert (distribution.source / "py.typed").exists()
    assert any(distribution.folder.glob("tests/**/test_*.py")), "no tests"


def test_tests_are_in_the_folders_of_what_they_test(distribution):
    tests = distribution.folder / "tests"
    folders = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")}
    folders -= END_TO_END.get(distribution.name, set())
    assert [name for name in sorted(folders) if not (distribution.source / name).is_dir()] == []


def test_every_folder_of_sources_has_tests_or_says_where_they_are(distribution):
    tests, listed = distribution.folder / "tests", TESTED_IN.get(distribution.name, {})
    modules = (path for path in distribution.source.rglob("*.py") if path.name != "__init__.py")
    folders = {path.parent.relative_to(distribution.source).as_posix() for path in modules}
    folders = {name.removesuffix("/helpers") for name in folders - {"."}}
    assert {name for name in folders if not [*(tests / name).glob("test_*.py")]} == set(listed)
    assert [path for path in listed.values() if not (tests / path).is_file()] == []


def test_it_says_who_it_is(distribution):
    project = distribution.project
    assert project["description"]
    assert project["readme"] == "README.md"
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]
    assert len(project["keywords"]) >= 3
    assert any(name_of(item) == "pytest" for item in project["optional-dependencies"]["test"])


def test_a_release_is_the_same_for_all(distribution, distributions):
    """All distributions have the same version, authors, Python versions and systems."""
    first = distributions[0].project
    for key in ("version", "authors", "requires-python", "classifiers"):
        assert distribution.project[key] == first[key], key


def test_distributions_of_a_release_require_each_other_at_its_version(distribution, distributions):
    project, ours = distribution.project, {found.name for found in distributions}
    listed = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    pinned = [f"{name}=={project['version']}" for name in map(name_of, listed) if name in ours]
    assert [item for item in listed if name_of(item) in ours] == pinned


def test_the_release_has_one_version(distributions, root):
    (version,) = {found.project["version"] for found in distributions}
    assert gossamer.__version__ == version
    assert f"\nversion: {version}\n" in (root / "CITATION.cff").read_text()
    changes = re.findall(r"^## \[(.+?)\]", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert next(found for found in changes if found != "Unreleased") == version


def test_its_oldest_python_is_the_first_that_it_claims(distribution):
    claimed = re.findall(r"Python :: 3\.(\d+)", " ".join(distribution.project["classifiers"]))
    first, *others = map(int, claimed)
    assert distribution.project["requires-python"] == f">=3.{first}"
    assert others == list(range(first + 1, first + 1 + len(others)))


def test_its_wheel_holds_the_license(distribution, root):
    """Python looks at what is installed: in the sessions of nox that is the wheel."""
    text = (root / "LICENSE").read_text()
    assert "Apache License" in text
    assert (distribution.folder / "LICENSE").read_text() == text
    installed = importlib.metadata.distribution(distribution.name)
    assert installed.metadata["License-Expression"] == "Apache-2.0"
    assert installed.read_text("licenses/LICENSE") == text


def test_it_needs_only_what_its_place_allows(distribution, distributions):
    ours = {found.name for found in distributions}
    allowed = MAY_NEED.get(distribution.name, ours - {distribution.name})
    assert needs(distribution) & ours <= allowed


def test_only_gossamer_may_need_everything(distributions):
    assert {found.name for found in distributions} - set(MAY_NEED) == {"gossamer"}


packages_installed = cache(importlib.metadata.packages_distributions)
"""Reads the records of all distributions: a second each time, and longer on a busy machine."""


def owners_of(package):
    """The distributions that may be declared for a package."""
    if package.startswith("gossamer"):
        return {package.replace("_", "-")}
    owners = packages_installed().get(package, [package])
    return {name.lower().replace("_", "-") for name in owners}


def imports_of(distribution):
    """The third-party packages that are imported, and where."""
    found = {}
    for path in distribution.source.rglob("*.py"):
        for package in imported_packages(path):
            if package not in sys.stdlib_module_names and package != distribution.package:
                found[package] = path.relative_to(distribution.folder)
    return found


def test_it_declares_what_it_imports(distribution):
    imports = imports_of(distribution)
    declared = needs(distribution) | extras_of(distribution)
    undeclared = {p: str(path) for p, path in imports.items() if not owners_of(p) & declared}
    assert undeclared == {}


def test_what_only_an_extra_installs_is_imported_inside_functions(distribution):
    optional = extras_of(distribution) - needs(distribution)
    early = {
        package
        for path in distribution.source.rglob("*.py")
        for package in imported_packages(path, when_imported=True)
        if owners_of(package) & optional
    }
    assert early == set()


def test_it_imports_what_it_declares(distribution):
    used = {owner for package in imports_of(distribution) for owner in owners_of(package)}
    installed_for_users = {"gossamer-generic-cpu"} if distribution.name == "gossamer" else set()
    assert needs(distribution) - used == installed_for_users
    assert extras_of(distribution) <= used


def private_names(path):
    """Names with an underscore that a file takes from modules of others, by any way that is written out."""
    tree, foreign = ast.parse(path.read_text()), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            foreign |= {(found.asname or found.name).partition(".")[0] for found in node.names}
            names = (found.name for found in node.names if found.name != "_thread")  # documented
            yield from (name for name in names if "._" in f".{name}")
        elif isinstance(node, ast.ImportFrom) and not node.module.startswith("gossamer"):
            foreign |= {found.asname or found.name for found in node.names}
            paths = [f"{node.module}.{found.name}" for found in node.names]
            yield from (path for path in paths if "._" in f".{path}" and "__future__" not in path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match(r"_(?!_)|__mro__", node.attr):
            owner = node.value
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            if isinstance(owner, ast.Name) and owner.id in foreign:
                yield ast.unparse(node)


def test_it_uses_no_private_names_of_others(distribution, tmp_path):
    found = {
        path.relative_to(distribution.source.parent).as_posix(): [*private_names(path)]
        for path in distribution.source.rglob("*.py")
    }
    allowed = {"gossamer_generic_cpu/target/machine.py": ["llvm.ffi.lib._lock"]}
    # The reason is written there.
    wrong = {name: names for name, names in found.items() if names != allowed.get(name, [])}
    assert wrong == {}
    for text in ("import os\nos._lock", "from os import _x", "import a.b as c\nc.d._e.f"):
        (tmp_path / "wrong.py").write_text(text)
        assert [*private_names(tmp_path / "wrong.py")] != []


def test_it_was_installed_from_here_and_not_from_an_index(distribution):
    origin = importlib.metadata.distribution(distribution.name).read_text("direct_url.json")
    assert origin is not None
    assert json.loads(origin)["url"].startswith("file:")


def test_one_command_installs_everything_for_development(distributions, root):
    """Editable, each distribution after those that it requires, and the tools that sessions install."""
    lines = (root / "requirements-dev.txt").read_text().splitlines()
    places = [line.removeprefix("-e ./") for line in lines if line.startswith("-e ")]
    by_place = {found.folder.relative_to(root).as_posix(): found for found in distributions}
    assert sorted(places) == sorted(by_place)
    ours, installed = {found.name for found in distributions}, set()
    for found in map(by_place.get, places):
        assert needs(found) & ours <= installed, found.name
        installed.add(found.name)
    groups = tomllib.loads((root / "pyproject.toml").read_text())["dependency-groups"]
    tools = {item for name in ("test", "lint", "types") for item in groups[name]}
    listed = [line for line in lines if line and not line.startswith(("#", "-e "))]
    assert sorted(listed) == sorted(tools)
    command = "python -m pip install -r requirements-dev.txt"
    for name in ("README.md", "CONTRIBUTING.md"):
        assert command in (root / name).read_text(), name


def test_every_helper_of_tests_has_a_name_of_its_own(distributions):
    """Helpers are imported by their names, and the tests of all distributions may run in one process."""
    folders = [found.folder / "tests/helpers" for found in distributions]
    names = Counter(path.name for folder in folders for path in folder.glob("*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_layering_contracts_know_every_package(distributions, root):
    linter = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]
    packages = {found.package for found in distributions}
    assert set(linter["root_packages"]) == packages | {"benchmarks", "tests.fuzzing"}
    layers = next(found for found in linter["contracts"] if found["type"] == "layers")["layers"]
    assert {name for layer in layers for name in layer.split(" | ")} == packages


KERNEL_MAKERS = (
    "gossamer.kernel_cache",
    "gossamer.operator_calls.program",
    "gossamer_backend.compiled_checks.compiled_check",
    "gossamer_generic_cpu.plugin",
)
"""The modules that build kernels, and those that write the programs of kernels that are cached by a name."""


def imported_modules(roots, distributions):
    """The modules of gossamer that modules import, directly or by others, also inside of functions."""
    files = {}
    for found in distributions:
        for path in found.source.rglob("*.py"):
            parts = path.relative_to(found.source.parent).with_suffix("").parts
            files[".".join(parts).removesuffix(".__init__")] = path
    reached, left = set(), list(roots)
    while left:
        module = left.pop()
        if module in reached or module not in files:
            continue
        reached.add(module)
        for node in ast.walk(ast.parse(files[module].read_text())):
            if isinstance(node, ast.Import):
                left += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                left += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return reached


def test_every_package_that_makes_kernels_is_in_their_keys(distributions):
    """A plugin has the version of its backend."""
    packages = {
        module.partition(".")[0] for module in imported_modules(KERNEL_MAKERS, distributions)
    }
    assert {*DISTRIBUTIONS} == {
        found.name
        for found in distributions
        if found.package in packages and found.folder.parent.name == "packages"
    }
