"""The command line: `gossamer --version`, or a command (`demo`, `run`, `show`, ...)."""

from gossamer.cli.entry_point import main

__all__ = ["main"]
