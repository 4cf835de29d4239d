"""The imports in the lists of passes of `gossamer_lower`, those in its `__init__.py`, and steps of pipelines.

The tuples in `LISTS` are the only lists of passes that are kept by hand; the file of a pass has its name. The
imports are written out, because type checkers, the checks of imports and the documentation site read them.
Steps are the passes of a pipeline by name, with the constructs that they act on and the arguments that they
need, so that a pipeline imports only the passes that a module and a target need.
The package is not imported here: it cannot be while the import of a new pass is missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tools import ROOT

PACKAGE = ROOT / "packages/lower/src/gossamer_lower"
LISTS = {
    "passes.py": "ORDERED_PASSES",
    "pipelines/flat_passes.py": "FLAT_PASSES",
    "pipelines/flat_pipeline.py": "FLAT_PIPELINE",
    "pipelines/device_passes.py": "DEVICE_PASSES",
}
"""The files that list passes, each with its tuple. The first one includes the others."""
STEPS = {
    "pipelines/flat_steps.py": ("pipelines/flat_pipeline.py", "FLAT_STEPS"),
    "pipelines/device_steps.py": ("pipelines/device_passes.py", "DEVICE_STEPS"),
}
"""The files of steps, each with the list that it follows from, and its tuple."""
_TABLE = '''\
"""The passes of `{passes}` by name; `python -m tools.generate pass_imports` writes this file."""

from __future__ import annotations

from gossamer_lower.pipelines.pipeline_step import PipelineStep

{steps}: tuple[PipelineStep, ...] = (
{rows})
'''
_IMPORTS = re.compile(r"(?:^ *from gossamer_lower(?:\.\w+)+ import .*\n)+", re.MULTILINE)
_OF_PASS = re.compile(r"from gossamer_lower\.(\w+)\.(\w+) import \2$")
_COMPOSED = {
    "bounds_check_flat": "gossamer_lower.pipelines.bounds_check_flat",
    "lower_to_device": "gossamer_lower.pipelines.lower_to_device",
    "lower_to_flat": "gossamer_lower.pipelines.lower_to_flat",
}
_EXPORTED_LISTS = {
    "DEVICE_PASSES": "gossamer_lower.pipelines.device_passes",
    "FLAT_PASSES": "gossamer_lower.pipelines.flat_passes",
}


def files() -> dict[Path, str]:
    """Return the text of each list of passes and of the package's `__init__.py`."""
    package = PACKAGE / "__init__.py"
    names = [name for file in LISTS for name in listed_names(file)]
    exports = {**{name: _home(name) for name in names}, **_COMPOSED, **_EXPORTED_LISTS}
    lists = {PACKAGE / file: _with_imports(file) for file in LISTS}
    lists |= {PACKAGE / file: _steps(*names) for file, names in STEPS.items()}
    lines = _sort_imports(f"    {line}" for line in _imports(exports))
    return {**lists, package: _IMPORTS.sub(lines, package.read_text(), count=1)}


def listed_names(file: str) -> list[str]:
    """Return the names in the tuple of a list, without those of lists in it."""
    return [name for name in _items(file) if not name.startswith("*")]


def _all_names(file: str) -> Iterator[str]:
    """Yield the names in the tuple of a list, and those of lists in it, in their order."""
    files = {f"*{list_name}": path for path, list_name in LISTS.items()}
    for name in _items(file):
        yield from _all_names(files[name]) if name in files else (name,)


def _items(file: str) -> list[str]:
    """Return the texts of the items in the tuple of a list, without importing it."""
    for node in ast.parse((PACKAGE / file).read_text()).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == LISTS[file]:
            assert isinstance(node.value, ast.Tuple)
            return [ast.unparse(item) for item in node.value.elts]
    raise LookupError(f"{file} has no tuple {LISTS[file]}")


def _with_imports(file: str) -> str:
    """Return the text of a list with the imports of its passes; it keeps its other imports."""
    text = (PACKAGE / file).read_text()
    imported = _IMPORTS.search(text)
    lines = imported[0].splitlines(keepends=True) if imported else []
    kept = [line for line in lines if not _OF_PASS.match(line.strip())]
    homes = {name: _home(name) for name in listed_names(file)}
    return _IMPORTS.sub(_sort_imports([*kept, *_imports(homes)]), text, count=1)


def _steps(file: str, steps: str) -> str:
    """Return the text of the file with the steps of a list of passes."""
    rows = "".join(map(_row, _all_names(file)))
    return _TABLE.format(passes=LISTS[file], steps=steps, rows=rows)


def _row(name: str) -> str:
    """Return the step of a pass, as `ruff` formats it."""
    construct, needed = _construct(name), _needed_argument(name)
    arguments = [
        f'"{name}"',
        f'"{_home(name)}"',
        *([] if construct is None else [f'"{construct}"']),
        *([] if needed is None else [f'argument="{needed}"']),
    ]
    line = f"    PipelineStep({', '.join(arguments)}),\n"
    if len(line) <= 101:
        return line
    inner = f"        {', '.join(arguments)}\n"
    if len(inner) > 101:
        inner = "".join(f"        {argument},\n" for argument in arguments)
    return f"    PipelineStep(\n{inner}    ),\n"


def _construct(name: str) -> str | None:
    """Return what the decorator of a pass declares as the construct that it acts on."""
    for decorator in _function(name).decorator_list:
        for keyword in getattr(decorator, "keywords", ()):
            if keyword.arg == "acts_on":
                return str(ast.literal_eval(keyword.value))
    return None


def _needed_argument(name: str) -> str | None:
    """Return the argument of a pass besides the module that has no default; None if there is none."""
    arguments = _function(name).args
    needed = [
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    if len(needed) > 1:
        raise LookupError(f"the pass '{name}' of a pipeline needs the arguments {needed}")
    return needed[0] if needed else None


def _function(name: str) -> ast.FunctionDef:
    """Return the definition of a pass."""
    (function,) = (
        node
        for node in ast.parse(_path(name).read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    return function


def _home(name: str) -> str:
    """Return the module of a pass: the file with its name, in one of the folders of the package."""
    return f"gossamer_lower.{_path(name).parent.name}.{name}"


def _path(name: str) -> Path:
    (path,) = PACKAGE.glob(f"*/{name}.py")
    return path


def _imports(homes: Mapping[str, str]) -> list[str]:
    return [f"from {module} import {names}\n" for names, module in homes.items()]


def _sort_imports(lines: Iterable[str]) -> str:
    """Return imports in the order in which `ruff` sorts them."""
    return "".join(sorted(lines, key=lambda line: line.split()[1]))
