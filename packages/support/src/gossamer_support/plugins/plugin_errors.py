"""Errors that name a plugin: for its exceptions, and for names that several plugins register."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from gossamer_support.errors import PluginError
from gossamer_support.plugins.installed_distributions import EntryPoint


@contextlib.contextmanager
def errors_as_plugin_errors(
    name: str,
    *,
    doing: str,
    passing: type[Exception] | tuple[type[Exception], ...] = PluginError,
) -> Iterator[None]:
    """Turn any exception of a plugin into `PluginError` (`plugin.failed`), except those of the types
    `passing` and `PluginError` itself. Only calls of foreign code are caught this widely.

    >>> with errors_as_plugin_errors("toy", doing="be loaded"):
    ...     raise ValueError("no license")
    Traceback (most recent call last):
    ...
    gossamer_support.errors.PluginError: The plugin 'toy' cannot be loaded: ValueError: no license. ...
    """
    try:
        yield
    except PluginError:
        raise
    except passing:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(
            "plugin.failed",
            f"The plugin '{name}' cannot {doing}: {type(error).__name__}: {str(error).rstrip('.')}.",
        ) from error


def duplicate_error(what: str, points: Iterable[EntryPoint]) -> PluginError:
    """Return the error for a name that several distributions register.

    >>> points = (EntryPoint("toy", "toy", "acme"), EntryPoint("toy", "another", "acme-toys"))
    >>> str(duplicate_error("the backend 'toy'", points))
    "Several distributions install the backend 'toy': acme, acme-toys. [plugin.duplicate]"
    """
    owners = ", ".join(sorted(point.distribution for point in points))
    return PluginError("plugin.duplicate", f"Several distributions install {what}: {owners}.")
