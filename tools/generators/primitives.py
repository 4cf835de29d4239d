"""The lists of primitives in `gossamer_schedule`.

The folder `primitives` is the only list that is kept by hand: a primitive is a module with a function
of its own name under `@primitive`. From the folder follow the names of `trace/primitive_table.py`, the
methods of `trace/fluent_primitives.py`, those by which rules record steps (`rules/steps/step_recorder.py`),
the imports of the package's `__init__.py`, and the tables of its README. They are written out, not computed
when the package is imported, so that type checkers and the documentation site see each of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tools import ROOT

PACKAGE = ROOT / "packages/schedule/src/gossamer_schedule"
README = ROOT / "packages/schedule/README.md"
_IMPORTS = re.compile(r"(?: *from gossamer_schedule\.primitives\.(?:[^(\n]*|[^)]*\))\n)+")
_LINE_LENGTH = 100
_METHODS = re.compile(r"(?:    \w+ = fluent\(\w+\)\n)+")
_HOMES = re.compile(r"_HOMES = \{.*?\}\n", re.DOTALL)
_RECORDER = re.compile(r"(?<=if TYPE_CHECKING:\n).*?(?=\n\nclass )", re.DOTALL)
_RECORDED = re.compile(r"(?<=    # --- primitives\n).*", re.DOTALL)
_TABLES = re.compile(r"(?<=## Primitives\n\n).*?(?=\n## )", re.DOTALL)
_STAGES = {"LOOP_STAGES": "position, loop", "STAGES": "any"}
_COMMON_ARGUMENTS = ("function", "intrinsics")


def primitives() -> list[tuple[str, str]]:
    """Return the module and the name of each primitive, in the order of the modules."""
    return sorted(_primitives())


def _primitives() -> Iterator[tuple[str, str]]:
    for path in PACKAGE.glob("primitives/*/*.py"):
        if re.search(rf"\n@primitive\(.*\)\ndef {path.stem}\(", path.read_text()):
            yield f"gossamer_schedule.primitives.{path.parent.name}.{path.stem}", path.stem


def files() -> dict[Path, str]:
    """Return the text of each file that lists primitives."""
    named = primitives()
    imports, guarded = (_imports(named, indent) for indent in ("", "    "))
    methods = "".join(
        f"    {name} = fluent({name})\n" for name in sorted(name for _, name in named)
    )
    homes = _homes({name: module for module, name in named})
    table, fluent = PACKAGE / "trace/primitive_table.py", PACKAGE / "trace/fluent_primitives.py"
    package, recorder = PACKAGE / "__init__.py", PACKAGE / "rules/steps/step_recorder.py"
    recorded = _RECORDER.sub(lambda _: _alias_imports(named), recorder.read_text())
    return {
        table: _HOMES.sub(homes, table.read_text()),
        fluent: _METHODS.sub(methods, _IMPORTS.sub(imports, fluent.read_text())),
        recorder: _RECORDED.sub(lambda _: _recording_methods(named), recorded),
        package: _IMPORTS.sub(guarded, package.read_text()),
        README: _TABLES.sub(lambda _: tables(), README.read_text()),
    }


def _imports(named: Sequence[tuple[str, str]], indent: str) -> str:
    """Return the imports as `ruff` formats them."""
    lines = [f"{indent}from {module} import {name}\n" for module, name in named]
    return "".join(
        line
        if len(line) <= _LINE_LENGTH + 1
        else f"{indent}from {module} import (\n{indent}    {name},\n{indent})\n"
        for line, (module, name) in zip(lines, named, strict=True)
    )


def _homes(modules: Mapping[str, str]) -> str:
    """Return the table of the module of each name."""
    rows = (f'    "{name}": "{module}",\n' for name, module in sorted(modules.items()))
    return "".join(["_HOMES = {\n", *rows, "}\n"])


def _recording_methods(named: Sequence[tuple[str, str]]) -> str:
    """Return a method for each primitive, with its arguments after the module."""
    return "".join(
        _recording_method(*method) for method in sorted(named, key=lambda method: method[1])
    )


def _recording_method(module_name: str, name: str) -> str:
    """Return the method that records a step of a primitive. An argument that may be left out is None."""
    declared = _function_of(module_name, name).args
    first, variadic = [_parameter(argument) for argument in declared.args[1:]], declared.vararg
    passed = [f"{argument.arg}={argument.arg}" for argument in declared.args[1:]]
    if variadic is not None:
        first.append(f"*{_parameter(variadic)}")
        passed.append(f"{variadic.arg}={variadic.arg}")
    named = []
    for argument, default in zip(declared.kwonlyargs, declared.kw_defaults, strict=True):
        if argument.arg not in _COMMON_ARGUMENTS:
            named.append(_parameter(argument, is_optional=default is not None))
            passed.append(f"{argument.arg}={argument.arg}")
    star = ["*"] if named and variadic is None else []
    head = _call(f"    def {name}", ["self", *first, *star, *named], end=" -> None:")
    return f"\n{head}" + _call("        self._record", [f'"{name}"', *passed])


def _parameter(argument: ast.arg, *, is_optional: bool = False) -> str:
    assert argument.annotation is not None
    text = ast.unparse(argument.annotation).replace("'", '"')
    if is_optional:
        text = f"{text.removesuffix(' | None')} | None = None"
    return f"{argument.arg}: {text}"


def _call(head: str, arguments: Sequence[str], end: str = "") -> str:
    """Return a call or a signature as `ruff` formats it."""
    indent = " " * (len(head) - len(head.lstrip()))
    listed = ", ".join(arguments)
    if len(head) + len(listed) + len(end) + 2 <= _LINE_LENGTH:
        return f"{head}({listed}){end}\n"
    if len(indent) + 4 + len(listed) <= _LINE_LENGTH:
        return f"{head}(\n{indent}    {listed}\n{indent}){end}\n"
    lines = "".join(f"{indent}    {argument},\n" for argument in arguments)
    return f"{head}(\n{lines}{indent}){end}\n"


def _alias_imports(named: Sequence[tuple[str, str]]) -> str:
    """Return the imports of the types that the arguments of primitives have."""
    modules: dict[str, set[str]] = {}
    for module, name in named:
        for alias, home in _types_of_arguments(module, name):
            if home != "typing":
                modules.setdefault(home, set()).add(alias)
    lines = (
        f"    from {home} import {', '.join(sorted(names))}\n"
        for home, names in sorted(modules.items())
    )
    return "".join(lines)


def _types_of_arguments(module_name: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the names in annotations of a primitive's arguments that are not built in, with the module that
    defines each."""
    tree = _tree_of(module_name)
    homes = {
        alias.name: node.module or ""
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    type_names = {
        node.target.id
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    declared = _function_of(module_name, name).args
    arguments = [*declared.args[1:], *declared.kwonlyargs]
    for argument in arguments:
        if argument.arg in _COMMON_ARGUMENTS or argument.annotation is None:
            continue
        for node in ast.walk(argument.annotation):
            if isinstance(node, ast.Name) and node.id in homes | dict.fromkeys(
                type_names, module_name
            ):
                yield node.id, homes.get(node.id, module_name)


def _tree_of(module_name: str) -> ast.Module:
    path = PACKAGE.parent / f"{module_name.replace('.', '/')}.py"
    return ast.parse(path.read_text())


def _function_of(module_name: str, name: str) -> ast.FunctionDef:
    (function,) = (
        node
        for node in _tree_of(module_name).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    return function


def tables() -> str:
    """Return the tables of the README: for each folder of primitives its docstring, and a row for each
    primitive."""
    sections = []
    for folder in sorted(path.parent for path in PACKAGE.glob("primitives/*/__init__.py")):
        named = {name for module, name in primitives() if module.split(".")[-2] == folder.name}
        intro = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
        rows = [_row(folder / f"{name}.py") for name in sorted(named)]
        head = [f"### {folder.name.capitalize()}", "", f"{intro}", ""]
        sections.append(
            "\n".join([*head, "| primitive | stage | effect |", "|---|---|---|", *rows])
        )
    return "\n\n".join(sections) + "\n"


def _row(path: Path) -> str:
    """Return the row of a primitive: its call, its stages, and the first sentence of its docstring."""
    body = ast.parse(path.read_text()).body
    (node,) = (x for x in body if isinstance(x, ast.FunctionDef) and x.name == path.stem)
    (decorator,) = node.decorator_list
    assert isinstance(decorator, ast.Call)
    declared = ast.unparse(decorator.keywords[0].value)
    stages = _STAGES.get(declared) or ", ".join(ast.literal_eval(declared))
    arguments = [argument.arg for argument in node.args.args[1:]]
    if node.args.vararg is not None:
        arguments.append(f"*{node.args.vararg.arg}")
    arguments += [x.arg for x in node.args.kwonlyargs if x.arg not in _COMMON_ARGUMENTS]
    line = (ast.get_docstring(node) or "").partition("\n")[0]
    sentence = re.split(r"(?<!\.)\.(?: |$)", line)[0]
    return f"| `{path.stem}({', '.join(arguments)})` | {stages} | {sentence} |"
