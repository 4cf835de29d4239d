"""Compilers with one defect each: a pass of which one line of source is another one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from unittest.mock import patch

from tests.generated.compilers import COMPILER, Compiler, Pass


@dataclass(frozen=True)
class Defect:
    """`line`, which stands just once in the source of `home`, reads `instead`, which breaks the pass
    `of`. `needs_schedule`: only scheduled programs show it."""

    says: str
    of: str
    home: str
    line: str
    instead: str
    needs_schedule: bool = False

    def compiler(self) -> Compiler:
        """The compiler with the broken pass."""
        return COMPILER.replaced(self.of, self._broken_pass())

    def _broken_pass(self) -> Pass:
        home = f"gossamer_lower.{self.home}"
        with _imported_anew(_Mutating(home, self.line, self.instead)):
            broken: Pass = getattr(import_module(f"gossamer_lower.{self.of}"), self.of)
        return broken


DEFECTS = (
    Defect(
        "a coordinate that is looked up is taken to be there",
        of="lower_iterations", home="lookups",
        line="            return (hit,)\n", instead="            return ()\n",
    ),
    Defect(
        "an iterator of one fibre is taken for one of another fibre",
        of="lower_iterations", home="lookups",
        line="iterator.above == above and ", instead="",
    ),
    Defect(
        "padded slots are visited",
        of="lower_iterations", home="lower_iterations",
        line="nest.predicate = build.conjunction(nest.predicate, slot)", instead="pass",
    ),
    Defect(
        "an absent element is zero, whatever its fill value",
        of="lower_iterations", home="lower_iterations",
        line="buffer.fill if buffer.fill is not None else ", instead="",
    ),
    Defect(
        "fused axes do not initialise empty rows",
        of="lower_iterations", home="lower_iterations",
        line="if node.init and init_visits_others(", instead="if False and init_visits_others(",
    ),
    Defect(
        "points that meet in one element each initialise it",
        of="lower_iterations", home="lower_iterations",
        line="return found if is_element else ", instead="return found if found else ",
    ),
    Defect(
        "an element of fused axes belongs to the row before, where it is the first of its row",
        of="lower_iterations", home="fused",
        line='Search("upper", ', instead='Search("lower", ',
    ),
    Defect(
        "a search ends where it would in the first fibre",
        of="lower_buffers", home="lower_buffers",
        line="end=element(start, node.end)", instead="end=node.end",
    ),
    Defect(
        "an element is initialised in every step of its reduction",
        of="lower_blocks", home="lower_blocks",
        line='if block.init and _feeds(loop, block, "R"):', instead="if False:",
    ),
    Defect(
        "a search finds what stands behind its window",
        of="expand_search", home="search_cells",
        line='Compare("lt", low, self.search.end)', instead='Compare("le", low, self.search.end)',
    ),
    Defect(
        "a user's reducer reads what it has written",
        of="expand_reducers", home="expand_reducers",
        line="var.name: let.var for var, let in zip(",
        instead="var.name: let.value for var, let in zip(",
    ),
    Defect(
        "the last copy of an unrolled loop is missing",
        of="unroll_loops", home="unroll_loops",
        line="for at in range(extent):", instead="for at in range(extent - 1):",
        needs_schedule=True,
    ),
    Defect(
        "lanes that are masked off are stored",
        of="vectorize_loops", home="vectors",
        line="predicate = build.conjunction(mask, own)", instead="predicate = own",
        needs_schedule=True,
    ),
    Defect(
        "iterations share a buffer that each needs for itself",
        of="plan_allocations", home="plan_allocations",
        line="build.index(interval.high - interval.low + 1)", instead="build.ONE",
        needs_schedule=True,
    ),
    Defect(
        "each share of a parallel loop is as long as the shares before it together",
        of="outline_parallel", home="outline_parallel",
        line="extent = build.sub(build.index_var(end), build.index_var(begin))",
        instead="extent = build.index_var(end)",
        needs_schedule=True,
    ),
)  # fmt: skip


class _Mutating(MetaPathFinder):
    """Finds one module, with a line of its source replaced."""

    def __init__(self, name: str, line: str, instead: str) -> None:
        self._name, self._line, self._instead = name, line, instead

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        found = PathFinder.find_spec(fullname, path, target)
        assert found is not None
        assert found.origin is not None
        found.loader = _Loader(fullname, found.origin, self._line, self._instead)
        return found


class _Loader(SourceFileLoader):
    """Compiles the mutated source, and stores nothing of it."""

    def __init__(self, name: str, path: str, line: str, instead: str) -> None:
        super().__init__(name, path)
        self._line, self._instead = line, instead

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        assert source.count(self._line) == 1, f"{self._line!r} stands not once in {fullname}"
        return compile(source.replace(self._line, self._instead), self.path, "exec")


@contextmanager
def _imported_anew(finder: MetaPathFinder) -> Iterator[None]:
    """All passes are imported again, apart from those that everybody else has."""
    others = {name: kept for name, kept in sys.modules.items() if "gossamer_lower" not in name}
    with (
        patch.dict(sys.modules, others, clear=True),
        patch.object(sys, "meta_path", [finder, *sys.meta_path]),
    ):
        yield
