"""A planted defect: a package is imported anew, apart from its ordinary import, with one line of source
replaced.

A line, and not a function that takes the place of another: nearly all defects are one condition or operand
within a function. A copy of the function with the defect would not follow changes of the original; a line
that has changed fails a test at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, ClassVar
from unittest.mock import patch


@dataclass(frozen=True)
class Planted:
    """`line`, which occurs once in the source of `home`, is replaced by `instead`, which breaks the pass,
    primitive or function `of`. `says` is what then goes wrong, and the id of its test."""

    package: ClassVar[str]
    """The package of `home`."""

    says: str
    _: KW_ONLY
    of: str
    home: str
    line: str
    instead: str

    @property
    def module(self) -> str:
        """The full name of the module with the defect."""
        return f"{self.package}.{self.home}"

    def imported(
        self, module_name: str, name: str, *, loading: Callable[[], None] = lambda: None
    ) -> Any:
        """The object with a name in a module of the package, with the defect. `loading` imports what the
        module imports later otherwise."""
        with _imported_anew(self.package, _Mutating(self)):
            member = getattr(import_module(module_name), name)
            loading()
            return member


class _Mutating(MetaPathFinder):
    """Finds one module and replaces a line of its source."""

    def __init__(self, defect: Planted) -> None:
        self._defect = defect

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._defect.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin, self._defect)
        return spec


class _Loader(SourceFileLoader):
    """Compiles the changed source without storing the result."""

    def __init__(self, name: str, path: str, defect: Planted) -> None:
        super().__init__(name, path)
        self._defect = defect

    def get_code(self, fullname: str) -> CodeType:
        source, line = self.get_data(self.path).decode(), self._defect.line
        assert source.count(line) == 1, f"{line!r} stands not once in {fullname}"
        return compile(source.replace(line, self._defect.instead), self.path, "exec")


@contextmanager
def _imported_anew(package: str, finder: MetaPathFinder) -> Iterator[None]:
    """Imports the modules of a package again, apart from the ordinary ones."""
    others = {name: kept for name, kept in sys.modules.items() if package not in name}
    with (
        patch.dict(sys.modules, others, clear=True),
        patch.object(sys, "meta_path", [finder, *sys.meta_path]),
    ):
        yield
