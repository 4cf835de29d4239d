"""Objects of one kind by name: those of gossamer, and those that installed distributions register.

A distribution registers an object by an entry point, whose name is that of the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Generic, TypeVar

from gossamer_support.errors import GossamerError, PluginError
from gossamer_support.plugins.installed_distributions import EntryPoint, installed_entry_points
from gossamer_support.plugins.plugin_errors import duplicate_error, errors_as_plugin_errors

T = TypeVar("T")


class NamedObjects(Generic[T]):
    """The objects of one kind, such as the formats of tensors.

    `group` is the group of the entry points that register them, and `kind` their name in messages. An entry
    point must name an object that `is_valid` accepts, which takes the object and the name; `expected`
    describes it. `built_in` has the function that returns each object of gossamer: a program uses few of
    them, so they are imported when needed.

    >>> numbers = NamedObjects(
    ...     "acme.numbers", "number", expected="a number", built_in={"one": lambda: 1}
    ... )
    >>> numbers.find("one"), numbers.find("two"), numbers.names()
    (1, None, ['one'])
    """

    def __init__(
        self,
        group: str,
        kind: str,
        *,
        expected: str,
        is_valid: Callable[[Any, str], bool] = lambda value, name: True,
        built_in: Mapping[str, Callable[[], T]] | None = None,
    ) -> None:
        self.group = group
        self.kind = kind
        self._expected = expected
        self._is_valid = is_valid
        self._built_in = built_in or {}
        self.find: Callable[[str], T | None] = cache(self._find)
        """Returns the object of a name, or None.

        Raises `PluginError` if the object is that of another distribution and cannot be used:
        `plugin.failed`, `plugin.duplicate`, or `plugin.entry_point` if it is not valid."""

    def names(self) -> list[str]:
        """Return all names, each once: those of gossamer, then those of other distributions."""
        return [*self._built_in, *self.registered_names()]

    def items(self) -> Iterator[tuple[str, T]]:
        """Iterate over all names with their objects; raises `PluginError` as `find` does."""
        for name in self.names():
            value = self.find(name)
            if value is not None:
                yield name, value

    def registered_names(self) -> list[str]:
        """Return the names that only other distributions have, sorted."""
        registered = {point.name for point in installed_entry_points(self.group)}
        return sorted(registered.difference(self._built_in))

    def ignored_entry_points(self) -> list[EntryPoint]:
        """Return the entry points that have a name of gossamer."""
        points = installed_entry_points(self.group)
        return [point for point in points if point.name in self._built_in]

    def errors_of(
        self, name: str, *, doing: str, passing: tuple[type[Exception], ...] = ()
    ) -> AbstractContextManager[None]:
        """Return a context that turns exceptions of another distribution's object into `PluginError`
        (`plugin.failed`), which names the object and the distribution. Errors of gossamer pass, and those of
        the types `passing`."""
        if name in self._built_in:
            return nullcontext()
        owners = ", ".join(point.distribution for point in self._points(name))
        return errors_as_plugin_errors(
            owners, doing=f"{doing} {self.kind} '{name}'", passing=(GossamerError, *passing)
        )

    def _points(self, name: str) -> list[EntryPoint]:
        return [point for point in installed_entry_points(self.group) if point.name == name]

    def _find(self, name: str) -> T | None:
        # The names of gossamer are its own: otherwise, any distribution could
        # block one of its objects. `ignored_entry_points` lists those that try.
        if name in self._built_in:
            return self._built_in[name]()
        points = self._points(name)
        if not points:
            return None
        if len(points) > 1:
            raise duplicate_error(f"the {self.kind} '{name}'", points)
        with errors_as_plugin_errors(
            points[0].distribution, doing=f"register the {self.kind} '{name}'"
        ):
            loaded: T = points[0].load()
        if not self._is_valid(loaded, name):
            raise PluginError(
                "plugin.entry_point",
                f"The entry point '{name}' of the group '{self.group}' names an object of type "
                f"'{type(loaded).__name__}'; expected {self._expected}.",
            )
        return loaded
