"""Every distribution declares its imports, imports only lower layers, and uses no private names of others."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from functools import cache

import pytest

from gossamer.compilation.build_kernels import DISTRIBUTIONS
from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

MAY_NEED = {
    "gossamer-support": set(),
    "gossamer-ir": {"gossamer-support"},
    "gossamer-machine": {"gossamer-support", "gossamer-ir"},
    "gossamer-heuristics": {"gossamer-support", "gossamer-ir", "gossamer-machine"},
    "gossamer-formats": {
        "gossamer-support",
        "gossamer-ir",
        "gossamer-machine",
        "gossamer-heuristics",
    },
    "gossamer-schedule": {
        "gossamer-support",
        "gossamer-ir",
        "gossamer-machine",
        "gossamer-heuristics",
    },
    "gossamer-lower": {"gossamer-support", "gossamer-ir", "gossamer-machine"},
    "gossamer-backend": {"gossamer-support", "gossamer-ir", "gossamer-machine"},
    "gossamer-llvm": {"gossamer-support", "gossamer-ir", "gossamer-machine"},
    "gossamer-testkit": {
        "gossamer-support",
        "gossamer-ir",
        "gossamer-machine",
        "gossamer-backend",
        "gossamer-formats",
    },
    "gossamer-tune": {
        "gossamer-support",
        "gossamer-ir",
        "gossamer-machine",
        "gossamer-heuristics",
    },
    "gossamer-host-runtime": {
        "gossamer-support",
        "gossamer-ir",
        "gossamer-backend",
        "gossamer-llvm",
    },
    "gossamer-emulation": {"gossamer-support", "gossamer-ir", "gossamer-backend"},
    "gossamer-generic-cpu": {
        "gossamer-support",
        "gossamer-ir",
        "gossamer-machine",
        "gossamer-backend",
        "gossamer-llvm",
        "gossamer-host-runtime",
        "gossamer-emulation",
    },
    "gossamer-cuda-mma-sp": {
        "gossamer-support",
        "gossamer-ir",
        "gossamer-machine",
        "gossamer-backend",
        "gossamer-llvm",
        "gossamer-lower",
    },
    "gossamer": {
        "gossamer-support",
        "gossamer-ir",
        "gossamer-machine",
        "gossamer-heuristics",
        "gossamer-formats",
        "gossamer-schedule",
        "gossamer-lower",
        "gossamer-backend",
        "gossamer-tune",
    },
    "gossamer-torch": {
        "gossamer-support",
        "gossamer-ir",
        "gossamer-backend",
        "gossamer-formats",
        "gossamer-schedule",
        "gossamer-host-runtime",
        "gossamer",
    },
    "gossamer-llvm-sve": {
        "gossamer-support",
        "gossamer-ir",
        "gossamer-machine",
        "gossamer-backend",
        "gossamer-llvm",
        "gossamer-emulation",
        "gossamer-host-runtime",
    },
}
NOT_IMPORTED = {"gossamer": {"gossamer-generic-cpu"}}
"""The other requirements of a distribution: the backend of its default target, a plugin."""


def imported_packages(path, *, when_imported=False):
    """The packages that a file imports; `when_imported`, only those outside of functions, and not for types
    only."""
    nodes = [tree_of(path.read_text())]
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


def test_a_distribution_requires_only_lower_ones(distribution, distributions):
    ours = {distribution.name for distribution in distributions}
    not_imported = NOT_IMPORTED.get(distribution.name, set())
    assert distribution.needs & ours <= MAY_NEED[distribution.name] | not_imported


def test_a_distribution_imports_only_lower_ones(distribution, distributions):
    ours = {each.package: each.name for each in distributions}
    imported = {
        ours[package]
        for path in distribution.source.rglob("*.py")
        for package in imported_packages(path)
        if package in ours
    }
    assert imported - {distribution.name} <= MAY_NEED[distribution.name]


def test_the_readme_says_what_each_distribution_may_import(root, distributions):
    rows = re.findall(
        r"^\| \[`(.+?)`\]\(.+?\) \| .+? \| (.*?) ?\|$",
        (root / "README.md").read_text(),
        re.MULTILINE,
    )
    listed = {path: {*filter(None, names.split(", "))} for path, names in rows}
    expected = {
        distribution.folder.relative_to(root).as_posix(): {
            name.removeprefix("gossamer-") for name in MAY_NEED[distribution.name]
        }
        for distribution in distributions
    }
    assert listed == expected


def test_every_distribution_has_a_place(distributions):
    assert {distribution.name for distribution in distributions} == set(MAY_NEED)


def test_torch_is_required_by_one_distribution_that_no_other_requires(distributions):
    assert [each.name for each in distributions if "torch" in each.needs] == ["gossamer-torch"]
    assert [each.name for each in distributions if "gossamer-torch" in each.needs] == []


packages_installed = cache(importlib.metadata.packages_distributions)
"""Reads the records of all distributions: a second each time, and longer on a busy machine."""


OWNERS = {"cuda": "cuda-bindings"}
"""The distributions of packages that have other names, and that need not be installed."""


def owners_of(package):
    """The distributions that may be declared for a package."""
    if package.startswith("gossamer"):
        return {package.replace("_", "-")}
    owners = packages_installed().get(package, [OWNERS.get(package, package)])
    return {name.lower().replace("_", "-") for name in owners}


def imports_of(distribution):
    """The third-party packages that are imported, and where."""
    imports = {}
    for path in distribution.source.rglob("*.py"):
        for package in imported_packages(path):
            if package not in sys.stdlib_module_names and package != distribution.package:
                imports[package] = path.relative_to(distribution.folder)
    return imports


def test_imported_distributions_are_declared(distribution):
    imports = imports_of(distribution)
    declared = distribution.needs | distribution.optional_needs
    undeclared = {p: str(path) for p, path in imports.items() if not owners_of(p) & declared}
    assert undeclared == {}


def test_what_only_an_extra_installs_is_imported_inside_functions(distribution):
    optional = distribution.optional_needs - distribution.needs
    early = {
        package
        for path in distribution.source.rglob("*.py")
        for package in imported_packages(path, when_imported=True)
        if owners_of(package) & optional
    }
    assert early == set()


def test_declared_distributions_are_imported(distribution):
    used = {owner for package in imports_of(distribution) for owner in owners_of(package)}
    installed_for_users = {"gossamer-generic-cpu"} if distribution.name == "gossamer" else set()
    assert distribution.needs - used == installed_for_users
    assert distribution.optional_needs <= used


def private_names(path):
    """Names with an underscore that a file takes from modules of others, by any way that is written out."""
    tree, foreign = tree_of(path.read_text()), set()
    for node in nodes_of(tree, ast.Import, ast.ImportFrom):
        if isinstance(node, ast.Import):
            foreign |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            names = (alias.name for alias in node.names if alias.name != "_thread")  # documented
            yield from (name for name in names if "._" in f".{name}")
        elif isinstance(node, ast.ImportFrom) and not node.module.startswith("gossamer"):
            foreign |= {alias.asname or alias.name for alias in node.names}
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (path for path in paths if "._" in f".{path}" and "__future__" not in path)
    for node in nodes_of(tree, ast.Attribute):
        if re.match(r"_(?!_)|__mro__", node.attr):
            owner = node.value
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            if isinstance(owner, ast.Name) and owner.id in foreign:
                yield ast.unparse(node)


def test_private_names_of_other_distributions_are_not_used(distribution, tmp_path):
    by_path = {
        path.relative_to(distribution.source.parent).as_posix(): {*private_names(path)}
        for path in distribution.source.rglob("*.py")
    }
    allowed = {
        "gossamer_host_runtime/native_target.py": {"llvm.ffi.lib._lock"},  # the reason is there
        "gossamer_support/fork.py": {"sys._current_frames"},  # documented
        "gossamer_torch/func_transforms.py": {  # the reason is there
            "torch._C",
            "torch._C._DisableFuncTorch",
            "torch._C._are_functorch_transforms_active",
            "torch._C._autograd",
            "torch._C._autograd._profiler_enabled",
            "torch._C._dispatch_tls_is_dispatch_key_excluded",
            "torch._C._functorch",
            "torch._C._get_tracing_state",
            "torch._C._len_torch_dispatch_stack",
            "torch._C._len_torch_function_stack",
        },
    }
    wrong = {name: names for name, names in by_path.items() if names != allowed.get(name, set())}
    assert wrong == {}
    for text in ("import os\nos._lock", "from os import _x", "import a.b as c\nc.d._e.f"):
        (tmp_path / "wrong.py").write_text(text)
        assert [*private_names(tmp_path / "wrong.py")] != []


def test_the_layering_contracts_know_every_package(distributions, root):
    linter = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]
    packages = {distribution.package for distribution in distributions}
    assert set(linter["root_packages"]) == packages | {"benchmarks", "tests.fuzzing"}
    layers = next(contract for contract in linter["contracts"] if contract["type"] == "layers")[
        "layers"
    ]
    assert {name for layer in layers for name in layer.split(" | ")} == packages


KERNEL_MAKERS = (
    "gossamer.compilation.build_kernels",
    "gossamer.operator_calls.operator_program",
    "gossamer_backend.compiled_checks.compiled_check",
    "gossamer_generic_cpu.plugin",
)
"""The modules that build kernels, and those that write the programs of kernels that are cached by a name."""


RUNS_KERNELS = {"gossamer_emulation"}
"""Packages that such modules import, and that change no code."""


def imported_modules(roots, distributions):
    """The modules of gossamer that modules import, directly or by others, also inside of functions."""
    files = {}
    for distribution in distributions:
        for path in distribution.source.rglob("*.py"):
            parts = path.relative_to(distribution.source.parent).with_suffix("").parts
            files[".".join(parts).removesuffix(".__init__")] = path
    reached, left = set(), list(roots)
    while left:
        module = left.pop()
        if module in reached or module not in files:
            continue
        reached.add(module)
        tree = tree_of(files[module].read_text())
        for node in nodes_of(tree, ast.Import, ast.ImportFrom):
            if isinstance(node, ast.Import):
                left += [alias.name for alias in node.names]
            else:
                left += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return reached


def test_every_package_that_makes_kernels_is_in_their_keys(distributions):
    """A plugin has the version of its backend."""
    packages = {
        module.partition(".")[0] for module in imported_modules(KERNEL_MAKERS, distributions)
    }
    assert {*DISTRIBUTIONS} == {
        distribution.name
        for distribution in distributions
        if distribution.package in packages - RUNS_KERNELS
        and distribution.folder.parent.name == "packages"
    }


OTHER_REPLACE = {"tests/fuzzing/execution/compilers.py", "tests/fuzzing/findings/shrinking.py"}
"""Files that also have the `replace` of dataclasses."""


def functions_by_module(tree):
    """The names that a file takes by a module, and all others by themselves: `replace(node, ...)` and
    `add(lhs, rhs)`."""
    for node in nodes_of(tree, ast.ImportFrom, ast.Attribute):
        match node:
            case ast.ImportFrom(module="gossamer_ir.core", names=names):
                yield from ("build" for alias in names if alias.name == "build")
            case ast.Attribute(attr="replace", value=module) if (
                ast.unparse(module) == "msgspec.structs"
            ):
                yield ast.unparse(node)


def test_replace_and_constructors_of_nodes_are_imported_by_name(root):
    folders = ("benchmarks", "docs", "examples", "packages", "plugins", "tests", "tools")
    by_path = {
        path.relative_to(root).as_posix(): {*functions_by_module(tree_of(path.read_text()))}
        for folder in folders
        for path in (root / folder).rglob("*.py")
    }
    assert {path for path, names in by_path.items() if names} == OTHER_REPLACE
    for text in ("from gossamer_ir.core import build", "msgspec.structs.replace(node)"):
        assert [*functions_by_module(ast.parse(text))] != []
