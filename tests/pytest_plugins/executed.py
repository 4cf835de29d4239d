"""A pytest plugin that counts which statements of a package its tests execute.

    python -m pytest -p tests.pytest_plugins.executed --executed gossamer_lower packages/lower/tests

The modules of the package are compiled from their sources, with a mark before each statement that may leave
a block. A tracer like that of coverage.py makes Python call a function for each line, which makes a test
take three times as long; a mark is one store. A run with fewer statements than `--executed-min`
percent fails.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

MARKS = "__executed__"
"""The list in a module in which the statements of a group set an item to 1."""
GROUPS: dict[str, list[list[int]]] = {}
"""The first lines of the statements of each group, by file. If the last statement of a group is reached, the
others have been executed."""
SEEN: dict[str, list[int]] = {}
"""1 for each group of a file that has been executed."""
BLOCKS = ("body", "orelse", "finalbody")


def is_counted(stmt: ast.stmt) -> bool:
    """False for statements that do nothing: constants, as docstrings are, and declarations."""
    match stmt:
        case ast.Expr(value=ast.Constant()) | ast.Global() | ast.Nonlocal():
            return False
        case ast.AnnAssign(value=None):
            return False
    return True


def is_for_types(node: ast.AST) -> bool:
    """True for `if TYPE_CHECKING`, whose body is never executed."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def mark_of(number: int, stmt: ast.stmt) -> ast.stmt:
    """Return `__executed__[number] = 1`, at the place of a statement."""
    marks = ast.Name(MARKS, ast.Load())
    item = ast.Subscript(marks, ast.Constant(number), ast.Store())
    made = ast.Assign([item], ast.Constant(1))
    for node in (marks, item.slice, item, made.value, made):
        ast.copy_location(node, stmt)
    return made


def marked(block: Sequence[ast.stmt], groups: list[list[int]]) -> list[ast.stmt]:
    """Return a block with a mark before the last statement of each group.

    A group ends with a statement that has blocks of its own, or with the last statement of the block. The
    numbers of the lines are added to `groups`. If a statement within a group raises, no statement of the
    group counts.
    """
    made: list[ast.stmt] = []
    lines: list[int] = []
    for number, stmt in enumerate(block):
        is_last = number == len(block) - 1
        if is_counted(stmt):
            lines.append(stmt.lineno)
        if lines and (is_last or any(hasattr(stmt, name) for name in (*BLOCKS, "cases"))):
            mark = mark_of(len(groups), stmt)
            is_future = isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__"
            made.extend([stmt, mark] if is_future else [mark, stmt])
            groups.append(lines)
            lines = []
        else:
            made.append(stmt)
    return made


def instrument(source: str) -> tuple[ast.Module, list[list[int]]]:
    """Return the tree of a module with its marks, and the groups of its statements."""
    tree, groups = ast.parse(source), list[list[int]]()
    for node in list(ast.walk(tree)):
        for name in BLOCKS:
            block = getattr(node, name, None)
            if not isinstance(block, list) or (name == "body" and is_for_types(node)):
                continue  # a lambda, whose body is an expression, or statements that never run
            setattr(node, name, marked(block, groups))
    return tree, groups


class MarkingLoader(SourceFileLoader):
    """Compiles the source of a module, with marks; what is cached on disk has none and is not used."""

    def get_code(self, fullname: str) -> CodeType:
        tree, GROUPS[self.path] = instrument(Path(self.path).read_text("utf-8"))
        SEEN[self.path] = [0] * len(GROUPS[self.path])
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        vars(module)[MARKS] = SEEN[self.path]
        exec(code, vars(module))


class MarkingFinder(MetaPathFinder):
    """Finds the modules of one package, so that they are loaded with marks."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self.package:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                break
        else:
            return None
        if isinstance(spec.loader, SourceFileLoader):
            spec.loader = MarkingLoader(spec.loader.name, spec.loader.path)
        return spec


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--executed", metavar="PACKAGE", required=True, help="The package.")
    parser.addoption("--executed-min", type=float, default=0.0, help="Percent of statements.")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Modules are loaded with marks from here on; conftest.py files are imported next."""
    package = early_config.known_args_namespace.executed
    loaded = [name for name in sys.modules if name.partition(".")[0] == package]
    if loaded:
        raise pytest.UsageError(
            f"-p tests.pytest_plugins.executed comes too late: {loaded[0]!r} is imported"
        )
    sys.meta_path.insert(0, MarkingFinder(package))


def sources(package: str) -> Iterator[Path]:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    for folder in spec.submodule_search_locations or ():
        yield from sorted(Path(folder).rglob("*.py"))


def counted(package: str) -> Iterator[tuple[Path, list[int], list[int]]]:
    """Yield each file of the package, the lines of its statements, and the lines that were not executed."""
    for path in sources(package):
        if str(path) not in GROUPS:
            GROUPS[str(path)] = instrument(path.read_text("utf-8"))[1]
        groups = GROUPS[str(path)]
        seen = SEEN.get(str(path), [0] * len(groups))
        missing = [
            line
            for lines, is_seen in zip(groups, seen, strict=True)
            if not is_seen
            for line in lines
        ]
        yield path, [line for lines in groups for line in lines], sorted(missing)


def ranges(lines: list[int], missing: list[int]) -> str:
    """Return the missing lines in words, as `3, 8-12`: between 8 and 12 no statement was executed."""
    runs: list[list[int]] = []
    absent = set(missing)
    for line in sorted(lines):
        if line not in absent:
            runs.append([])
        else:
            runs[-1:] = [[*runs[-1], line]] if runs else [[line]]
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs if run)


def percentage(package: str) -> float:
    """Return the percentage of the statements that were executed."""
    files = list(counted(package))
    total = sum(len(lines) for _, lines, _ in files)
    return 100 * (1 - sum(len(missing) for *_, missing in files) / max(total, 1))


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    package, least = (session.config.getoption(name) for name in ("executed", "executed_min"))
    if output is not None:
        output["executed"] = SEEN
    elif percentage(package) < least and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Adds what a process of pytest-xdist has executed; the last hook before the session ends."""
    for path, seen in node.workeroutput["executed"].items():
        marks = SEEN.setdefault(path, seen)
        marks[:] = [max(pair) for pair in zip(marks, seen, strict=True)]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    package, least = config.getoption("executed"), config.getoption("executed_min")
    terminalreporter.section(f"statements of {package} that no test executed, by line")
    for path, lines, missing in counted(package):
        if missing:
            share = 100 * (1 - len(missing) / len(lines))
            terminalreporter.write_line(f"{share:5.1f} %  {path}: {ranges(lines, missing)}")
    reached = percentage(package)
    verdict = f"{reached:.2f} % of the statements of {package} were executed"
    if reached < least:
        terminalreporter.write_line(f"{verdict}; at least {least:g} % must be", red=True)
    else:
        terminalreporter.write_line(f"{verdict} ({least:g} % must be)", green=True)
