"""A name for a type is declared as one: `Pair: TypeAlias = tuple[int, int]`."""

from __future__ import annotations

import ast

import pytest

from tests.conventions.syntax_trees import tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages", "plugins", "benchmarks", "examples", "tests", "tools", "docs")
CONSTRUCTORS = {
    "Annotated", "Callable", "Iterable", "Iterator", "Literal", "Mapping", "Optional", "Sequence", "Union",
    "dict", "frozenset", "list", "set", "tuple", "type",
}  # fmt: skip
PLAIN = {"Any", "bool", "float", "int", "str"}


def is_type(value):
    """Whether an expression can only be a type."""
    match value:
        case ast.Subscript(value=ast.Name(id=name)):
            return name in CONSTRUCTORS
        case ast.Subscript(value=ast.Attribute(attr=name)):
            return name in {"NDArray", "ndarray"}
        case ast.BinOp(op=ast.BitOr()):
            return is_member(value.left) and is_member(value.right)
        case ast.Name(id=name):
            return name in PLAIN
    return False


def is_member(value):
    """Whether an expression can be a member of a union."""
    match value:
        case ast.Name(id=name):
            return name in PLAIN or not (name.isupper() or name.islower())
        case ast.Attribute(attr=name):
            return name[0].isupper() and not name.isupper()
        case ast.Constant():
            return value.value is None or isinstance(value.value, str)
    return is_type(value)


def undeclared_in(text):
    """The names of types that a module assigns without a declaration."""
    return [
        target.id
        for node in tree_of(text).body
        if isinstance(node, ast.Assign) and is_type(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def test_names_of_types_are_declared(root):
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*.py")]
    by_path = {
        f"{path.relative_to(root)}: {name}"
        for path in paths
        for name in undeclared_in(path.read_text())
    }
    assert by_path == set()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("Pair = tuple[int, int]", ["Pair"]),
        ("Node = Leaf | Inner", ["Node"]),
        ("Maybe = int | None", ["Maybe"]),
        ("Array = np.ndarray[Any, Any]", ["Array"]),
        ("Value = Any", ["Value"]),
        ("Pair: TypeAlias = tuple[int, int]", []),
        ("FLAGS = re.MULTILINE | re.DOTALL", []),
        ("FIRST = NAMES[0]", []),
        ("ALL = FIRST | SECOND", []),
    ],
)
def test_an_assignment_of_a_type_is_found(line, names):
    assert undeclared_in(line) == names
