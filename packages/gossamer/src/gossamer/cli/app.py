"""The commands of the command line."""

from __future__ import annotations

import typer

from gossamer.cli.commands.backends import backends
from gossamer.cli.commands.cache import cache
from gossamer.cli.commands.demo import demo
from gossamer.cli.commands.export import export
from gossamer.cli.commands.formats import formats
from gossamer.cli.commands.info import info
from gossamer.cli.commands.opt import opt
from gossamer.cli.commands.run import HELP as HELP_OF_RUN
from gossamer.cli.commands.run import run
from gossamer.cli.commands.show import show
from gossamer.cli.versions import gossamer

app = typer.Typer(
    name="gossamer",
    add_completion=False,
    rich_markup_mode=None,
)
app.callback()(gossamer)
app.command("demo")(demo)
app.command("run", help=HELP_OF_RUN)(run)
app.command("show")(show)
app.command("opt")(opt)
app.command("export")(export)
app.command("backends")(backends)
app.command("formats")(formats)
app.command("info")(info)
app.add_typer(cache, name="cache")
