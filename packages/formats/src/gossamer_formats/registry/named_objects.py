"""Objects of one kind by name: those of the library, and those that installed distributions register.

A distribution registers an object by an entry point, whose name is that of the object.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from gossamer_ir.errors import FormatError, GossamerError, PluginError
from gossamer_ir.plugins.installed_distributions import EntryPoint, installed_entry_points
from gossamer_ir.plugins.plugin_errors import duplicate_error, errors_as_plugin_errors

T = TypeVar("T")


class NamedObjects(Generic[T]):
    """The objects of one kind, such as the formats of tensors.

    `group` is the group of the entry points that register them, and `kind` their name in messages. An entry
    point must name an object that `is_valid` accepts, which takes the object and the name; `expected`
    describes it. The objects of the library, if it has some, are in the modules `library_names` of the
    package `library`, each in the constant `FORMAT`.

    >>> formats = NamedObjects(
    ...     "acme.formats",
    ...     "format",
    ...     expected="a format",
    ...     library="gossamer_formats.descriptions",
    ...     library_names=("bsr", "csr"),
    ... )
    >>> formats.find("csr").name, formats.find("rows"), formats.names()
    ('csr', None, ['bsr', 'csr'])
    """

    def __init__(
        self,
        group: str,
        kind: str,
        *,
        expected: str,
        is_valid: Callable[[Any, str], bool] = lambda found, name: True,
        library: str | None = None,
        library_names: tuple[str, ...] = (),
    ) -> None:
        self.group = group
        self.kind = kind
        self._expected = expected
        self._is_valid = is_valid
        self._library = library
        self._library_names = library_names
        self.find: Callable[[str], T | None] = cache(self._find)
        """Returns the object of a name, or None.

        Raises `PluginError` if the object is that of another distribution and cannot be used:
        `plugin.failed`, `plugin.duplicate`, or `plugin.entry_point` if it is not valid."""

    def named(self, name: str) -> T:
        """Return the object of a name; raises `FormatError` (`format.unknown`) if there is none."""
        found = self.find(name)
        if found is None:
            raise FormatError(
                "format.unknown",
                f"There is no {self.kind} '{name}'; expected one of: {', '.join(self.names())}.",
            )
        return found

    def names(self) -> list[str]:
        """Return all names, each once: those of the library, then those of other distributions."""
        registered = {point.name for point in installed_entry_points(self.group)}
        return [*self._library_names, *sorted(registered.difference(self._library_names))]

    def ignored(self) -> list[EntryPoint]:
        """Return the entry points that have a name of the library."""
        points = installed_entry_points(self.group)
        return [point for point in points if point.name in self._library_names]

    def errors_of(self, name: str, *, doing: str) -> AbstractContextManager[None]:
        """Return a context that turns exceptions of another distribution's object into `PluginError`
        (`plugin.failed`), which names the object and the distribution. Errors of gossamer pass."""
        if name in self._library_names:
            return nullcontext()
        owners = ", ".join(point.distribution for point in self._points(name))
        return errors_as_plugin_errors(
            owners, doing=f"{doing} {self.kind} '{name}'", passing=GossamerError
        )

    def _points(self, name: str) -> list[EntryPoint]:
        return [point for point in installed_entry_points(self.group) if point.name == name]

    def _find(self, name: str) -> T | None:
        # The names of the library are its own: otherwise, any distribution could
        # block one of its objects. `ignored` lists those that try.
        if name in self._library_names:
            # Imported when needed: a program uses few of the objects.
            own: T = import_module(f"{self._library}.{name}").FORMAT
            return own
        points = self._points(name)
        if not points:
            return None
        if len(points) > 1:
            raise duplicate_error(f"the {self.kind} '{name}'", points)
        with errors_as_plugin_errors(
            points[0].distribution, doing=f"register the {self.kind} '{name}'"
        ):
            found: T = points[0].load()
        if not self._is_valid(found, name):
            raise PluginError(
                "plugin.entry_point",
                f"The entry point '{name}' of the group '{self.group}' names an object of type "
                f"'{type(found).__name__}'; expected {self._expected}.",
            )
        return found
