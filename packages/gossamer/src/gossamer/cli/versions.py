"""`gossamer --version`: the installed distributions, for reports of bugs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Annotated, TypeAlias

import typer

from gossamer_support.plugins.groups import PLUGIN_GROUPS

_PREFIX = "gossamer-"


def _show_and_exit(*, wanted: bool) -> None:
    if wanted:
        print(describe_versions(metadata.version("gossamer"), installed_versions()))
        raise typer.Exit


_Version: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--version",
        callback=_show_and_exit,
        is_eager=True,
        help="print the versions of gossamer, its packages and plugins",
    ),
]


def gossamer(*, version: _Version = False) -> None:
    """A compiler for sparse tensor programs."""


def installed_versions() -> dict[str, str]:
    """Return the version of each installed package and plugin of gossamer, sorted by name.

    A plugin is a distribution with an entry point of one of `PLUGIN_GROUPS`, whatever its name.
    """
    distributions = list(metadata.distributions())
    points = (point for group in PLUGIN_GROUPS for point in metadata.entry_points(group=group.name))
    # The distribution gossamer itself registers operators, and has a line of its own.
    plugins = {point.dist.name for point in points if point.dist} - {"gossamer"}
    # A path that is listed twice gives a distribution twice; the first is the one that is imported.
    versions = {dist.name: dist.version for dist in reversed(distributions)}
    names = sorted(name for name in versions if name.startswith(_PREFIX) or name in plugins)
    return {name: versions[name] for name in names}


def describe_versions(version: str, others: Mapping[str, str]) -> str:
    """
    >>> print(describe_versions("1.0", {"gossamer-ir": "1.0", "acme": "2.5"}))
    gossamer 1.0
      gossamer-ir  1.0
      acme         2.5
    """
    width = max(map(len, others), default=0)
    return "\n".join(
        [f"gossamer {version}", *(f"  {name:<{width}}  {others[name]}" for name in others)]
    )
