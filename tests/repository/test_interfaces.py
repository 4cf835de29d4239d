"""A package imports another one by its exports, never from its inner modules."""

from __future__ import annotations

import ast
import importlib
import re

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

SHARED = ("gossamer_support", "gossamer_ir", "gossamer_machine", "gossamer_heuristics")
"""Support, the language, the machine and heuristics: other packages import any module of them."""


def modules_for_plugins(root):
    """The modules that `docs/plugins.md` declares; a plugin may import no others."""
    page = (root / "docs/plugins.md").read_text()
    return set(re.findall(r"^\| `(gossamer_[\w.]+)` \|", page, re.MULTILINE))


def foreign_imports(path, package):
    """The modules of other packages that a file imports names from, and the names."""
    for node in nodes_of(tree_of(path.read_text()), ast.ImportFrom, ast.Import):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            owner = node.module.partition(".")[0]
            if owner.startswith("gossamer") and owner not in (package, *SHARED):
                yield from ((owner, node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                owner = alias.name.partition(".")[0]
                if owner.startswith("gossamer") and owner not in (package, *SHARED):
                    yield owner, alias.name, ""


def test_packages_import_each_other_by_their_interfaces(distribution, root):
    declared = modules_for_plugins(root)
    inner = [
        f"{path.relative_to(distribution.source)} imports {name or 'all'} of {module}"
        for path in distribution.source.rglob("*.py")
        for owner, module, name in foreign_imports(path, distribution.package)
        if module not in (owner, f"{owner}.internal_api", *declared)
    ]
    assert inner == []


def test_an_interface_has_no_name_that_nobody_imports(distributions):
    """Names that only one package needs are no part of its interface."""
    used = {
        (module, name)
        for distribution in distributions
        for path in distribution.source.rglob("*.py")
        for _, module, name in foreign_imports(path, distribution.package)
    }
    modules = [
        importlib.import_module(f"{distribution.package}.internal_api")
        for distribution in distributions
        if (distribution.source / "internal_api.py").exists()
    ]
    assert len(modules) == 6
    unused = [
        (module.__name__, name)
        for module in modules
        for name in module.__all__
        if (module.__name__, name) not in used
    ]
    assert unused == []


def test_an_import_of_an_inner_module_is_found(tmp_path):
    (tmp_path / "wrong.py").write_text(
        "from gossamer_formats.storage import evaluate\nimport gossamer_lower.passes\n"
        "from gossamer_ir.nodes import Module\nfrom gossamer_backend import Kernel\n"
    )
    imports = list(foreign_imports(tmp_path / "wrong.py", "gossamer_backend"))
    assert imports == [
        ("gossamer_formats", "gossamer_formats.storage", "evaluate"),
        ("gossamer_lower", "gossamer_lower.passes", ""),
    ]
