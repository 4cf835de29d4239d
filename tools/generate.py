"""Generates files that follow from others.

    python -m tools.generate [NAME ...]            writes those that have changed
    python -m tools.generate [NAME ...] --check    lists them, and fails if there are any

A name is that of a module in `tools/generators`; without names, all of them run.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools import ROOT

NAMES = (
    "primitives",
    "operators",
    "formats",
    "file_formats",
    "parallel_conversions",
    "pass_imports",
    "exports",
    "coefficients",
    "schema",
    "parsed_programs",
    "corpus",
    "errors",
    "unsupported",
    "language",
    "accepted",
    "passes",
    "rules",
    "plugins",
    "command_line",
    "decisions",
    "benchmark_parts",
    "pictures",
    "gallery",
)
"""The generators in the order in which they run: one that reads the file of another comes after it."""


def generated_files(name: str) -> Mapping[Path, str | bytes]:
    """Return the contents that the files of a generator should have.

    Its module is imported only now, because the files of an earlier generator may be missing or wrong:
    `gossamer_schedule` cannot be imported before its list of primitives fits the folder.
    """
    contents: Mapping[Path, str | bytes] = importlib.import_module(
        f"tools.generators.{name}"
    ).files()
    return contents


def outdated_files(name: str) -> dict[Path, bytes]:
    """Return the new contents of the files of a generator that differ from those stored."""
    contents = {
        path: content.encode() if isinstance(content, str) else content
        for path, content in generated_files(name).items()
    }
    return {
        path: content
        for path, content in contents.items()
        if not path.exists() or path.read_bytes() != content
    }


def main(arguments: Sequence[str]) -> int:
    """Generate or check the files of the named generators, and return the exit status."""
    parser = argparse.ArgumentParser("python -m tools.generate", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"unknown generator '{unknown[0]}'; expected one of {', '.join(NAMES)}")
    count = 0
    for name in NAMES:
        if options.names and name not in options.names:
            continue
        for path, content in outdated_files(name).items():
            count += 1
            print(f"{name}: {path.relative_to(ROOT)}", flush=True)
            if not options.check:
                path.write_bytes(content)
    return 1 if options.check and count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
