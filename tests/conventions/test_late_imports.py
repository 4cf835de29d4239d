"""An import is inside a function only if what it loads is not loaded with the file.

There are two reasons for such an import. Calls that do not reach the function start faster without it: most
of the time of a first call is that of imports (`packages/gossamer/tests/processes/test_first_calls.py`). Or
an extra installs the package. A cycle is not a reason: the contract "No cycles" of import-linter counts such
imports, too.
"""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import read_distributions
from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized


class Sources:
    """The modules of all distributions by their names, and what each imports."""

    def __init__(self, distributions):
        self.trees = {}
        for distribution in distributions:
            for path in distribution.source.rglob("*.py"):
                parts = path.relative_to(distribution.source.parent).with_suffix("").parts
                name = ".".join(parts).removesuffix(".__init__")
                self.trees[name] = tree_of(path.read_text())
        self.homes = {name: homes_of(tree) for name, tree in self.trees.items()}
        self.imports = {name: self.modules_of(*outside(tree)) for name, tree in self.trees.items()}

    def modules_of(self, *imports):
        """The modules that imports load, but for those that these import."""
        return {
            module
            for node in imports
            for alias in node.names
            for module in (
                [alias.name]
                if isinstance(node, ast.Import)
                else self.loaded(node.module, alias.name)
            )
        }

    def loaded(self, module, name):
        """The modules that `from module import name` loads: an export is loaded with the module that it is
        from."""
        inner = f"{module}.{name}"
        if module not in self.trees:
            return {module, inner} if is_module(inner) else {module}
        if inner in self.trees:
            return {module, inner}
        return {module, self.homes[module].get(name, module)}

    def loaded_with(self, name):
        """The modules that are loaded with a module, whatever is called."""
        reached, left = set(), [name]
        while left:
            module = left.pop()
            if module not in reached:
                reached.add(module)
                left += [module.rpartition(".")[0]] if "." in module else []
                left += self.imports.get(module, ())
        return reached

    def needless(self, name):
        """The modules that a module imports inside of functions although they are loaded with it."""
        tree = self.trees[name]
        outer = {id(node) for node in outside(tree, has_types=True)}
        imports = nodes_of(tree, ast.Import, ast.ImportFrom)
        inside = [node for node in imports if id(node) not in outer]
        if not inside:
            return []
        loaded = self.loaded_with(name)
        return [ast.unparse(node) for node in inside if self.modules_of(node) <= loaded]


def homes_of(tree):
    """The modules from which a package exports names on first use."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            return ast.literal_eval(node.value)
    return {}


def outside(tree, *, has_types=False):
    """The imports that run when a module is imported; with `has_types` also those for types only."""
    nodes = [tree]
    for node in nodes:
        is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if (has_types or not is_for_types) and not isinstance(node, ast.FunctionDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield node


@cache
def is_module(name):
    """Whether a module of another project has this name; no package is imported for the answer."""
    package, *inner = name.split(".")
    spec = importlib.util.find_spec(package)
    places = (spec and spec.submodule_search_locations) or ()
    paths = [Path(place, *inner) for place in places]
    return any(path.is_dir() or any(path.parent.glob(f"{path.name}.*")) for path in paths)


@pytest.fixture(scope="module")
def sources():
    return Sources(read_distributions())


def test_what_a_function_imports_is_not_loaded_with_its_file(sources):
    needless = {name: sources.needless(name) for name in sources.trees}
    assert {name: imports for name, imports in needless.items() if imports} == {}


@pytest.mark.parametrize(
    ("text", "is_needless"),
    [
        ("import json\ndef f():\n    import json", True),
        ("def f():\n    import json", False),
        ("import scipy\ndef f():\n    from scipy import sparse", False),
        ("from scipy.sparse import csr_array\ndef f():\n    import scipy.sparse", True),
        ("from gossamer_ir import Module\ndef f():\n    from gossamer_ir.nodes import Var", True),
        ("from gossamer_ir.nodes import Var\ndef f():\n    from gossamer_ir import Module", True),
        ("import gossamer_ir\ndef f():\n    from gossamer_ir.nodes import Var", False),
        ("if TYPE_CHECKING:\n    import json\ndef f():\n    import json", False),
        ("class C:\n    import json\ndef f():\n    import json", True),
    ],
)
def test_an_import_that_saves_nothing_is_found(sources, text, is_needless):
    changed = Sources([])
    changed.trees, changed.homes = {**sources.trees, "new": tree_of(text)}, sources.homes
    changed.imports = {**sources.imports, "new": changed.modules_of(*outside(tree_of(text)))}
    assert bool(changed.needless("new")) == is_needless
