"""Exceptions of plugins as errors that name the plugin."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gossamer_ir.errors import GossamerError, PluginError


@contextlib.contextmanager
def errors_as_plugin_errors(
    name: str, *, doing: str, passing: type[GossamerError] = PluginError
) -> Iterator[None]:
    """Turn any exception of a plugin into `PluginError` (`plugin.failed`), except those of type `passing`
    and `PluginError` itself. Only calls of foreign code are caught this widely.

    >>> with errors_as_plugin_errors("toy", doing="be loaded"):
    ...     raise ValueError("no license")
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.PluginError: The plugin 'toy' cannot be loaded: ValueError: no license. [plugin.failed]
    """
    try:
        yield
    except (PluginError, passing):
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(
            "plugin.failed",
            f"The plugin '{name}' cannot {doing}: {type(error).__name__}: {str(error).rstrip('.')}.",
        ) from error
