"""`gossamer backends`: what is installed, and whether it works here."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from gossamer.build import registry


def backends() -> None:
    """List the backends: name, version, targets, and whether they are usable here or why not."""
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "version", "targets", "usable"):
        table.add_column(heading, overflow="fold")
    for found in registry.list():
        usable = "yes" if found.usable else f"no: {found.reason}"
        table.add_row(found.name, found.version, " ".join(found.targets), usable)
    Console(soft_wrap=True, highlight=False, markup=False).print(table)
