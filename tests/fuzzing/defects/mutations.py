"""Imports a package with one line of source replaced, apart from its ordinary import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any
from unittest.mock import patch


@dataclass(frozen=True)
class Mutation:
    """`line`, which occurs once in the source of the module `home`, is replaced by `instead`."""

    home: str
    line: str
    instead: str

    def imported(
        self, module: str, name: str, *, loading: Callable[[], None] = lambda: None
    ) -> Any:
        """The object with a name in a module of the package, with the changed line. `loading` imports what
        the module imports later otherwise."""
        with _imported_anew(self.home.partition(".")[0], _Mutating(self)):
            found = getattr(import_module(module), name)
            loading()
            return found


class _Mutating(MetaPathFinder):
    """Finds one module and replaces a line of its source."""

    def __init__(self, mutation: Mutation) -> None:
        self._mutation = mutation

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._mutation.home:
            return None
        found = PathFinder.find_spec(fullname, path, target)
        assert found is not None
        assert found.origin is not None
        found.loader = _Loader(fullname, found.origin, self._mutation)
        return found


class _Loader(SourceFileLoader):
    """Compiles the changed source without storing the result."""

    def __init__(self, name: str, path: str, mutation: Mutation) -> None:
        super().__init__(name, path)
        self._mutation = mutation

    def get_code(self, fullname: str) -> CodeType:
        source, line = self.get_data(self.path).decode(), self._mutation.line
        assert source.count(line) == 1, f"{line!r} stands not once in {fullname}"
        return compile(source.replace(line, self._mutation.instead), self.path, "exec")


@contextmanager
def _imported_anew(package: str, finder: MetaPathFinder) -> Iterator[None]:
    """Imports the modules of a package again, apart from the ordinary ones."""
    others = {name: kept for name, kept in sys.modules.items() if package not in name}
    with (
        patch.dict(sys.modules, others, clear=True),
        patch.object(sys, "meta_path", [finder, *sys.meta_path]),
    ):
        yield
