"""`gossamer cache`: the compiled kernels on disk."""

from __future__ import annotations

import typer

from gossamer_backend import ArtifactCache
from gossamer_support.message_texts import amount

cache = typer.Typer(help="The compiled kernels on disk.", rich_markup_mode=None)


@cache.command()
def info() -> None:
    """Show where the cache is, how much space it takes on disk and how much it may take."""
    usage = ArtifactCache().info()
    print(f"path     {usage.path}\nentries  {usage.entries}")
    print(f"bytes    {usage.bytes}\nlimit    {usage.limit}")


@cache.command()
def path() -> None:
    """Print the directory of the cache."""
    print(ArtifactCache().path)


@cache.command()
def clear() -> None:
    """Remove all entries.

    Kernels are compiled again when they are next needed.
    """
    print(f"removed {amount(ArtifactCache().clear(), 'entry', 'entries')}")
