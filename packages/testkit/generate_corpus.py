"""Writes the corpus of the testkit: `python packages/testkit/generate_corpus.py`.

It needs all packages of gossamer, which lower the kernels of the corpus. A test compares the file with
the output of this program.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from corpus_programs import (  # noqa: E402
    control,
    every_operation,
    launches_and_loops,
    memory_accesses,
    other_formats,
    rarer,
    scheduled_operators,
)

from gossamer_backend import required_capabilities  # noqa: E402
from gossamer_ir.interchange.serialization import dumps  # noqa: E402
from gossamer_ir.verify import verify  # noqa: E402
from gossamer_testkit.corpus.program import PROGRAMS, Entry, Manifest  # noqa: E402

FILE = HERE / "src" / "gossamer_testkit" / "corpus" / PROGRAMS


def programs() -> Iterator[tuple[Manifest, bytes]]:
    """The manifest and the wire text of every program."""
    for family in (
        every_operation,
        memory_accesses,
        control,
        launches_and_loops,
        rarer,
        scheduled_operators,
        other_formats,
    ):
        for source in family.sources():
            module = verify(source.module)
            needs = tuple(sorted(required_capabilities(module)))
            manifest = Manifest(
                source.name, source.says, needs, source.cases, source.oracle, source.options
            )
            yield manifest, dumps(module)


def lines() -> list[bytes]:
    """The lines of the file, sorted by the names of their programs."""
    found: dict[str, bytes] = {}
    for manifest, text in programs():
        if manifest.name in found:
            raise ValueError(f"two programs have the name '{manifest.name}'")
        found[manifest.name] = msgspec.json.encode(Entry(manifest, msgspec.Raw(text)))
    return [found[name] for name in sorted(found)]


def stored() -> list[bytes]:
    """The lines of the existing file, none if there is no file."""
    return gzip.decompress(FILE.read_bytes()).splitlines() if FILE.exists() else []


def main() -> None:
    """Writes the file if its lines differ. Lines are compared because the compressed bytes depend on the
    version of zlib."""
    wanted = lines()
    if wanted != stored():
        text = b"".join(line + b"\n" for line in wanted)
        FILE.write_bytes(gzip.compress(text, mtime=0))
    print(f"{len(wanted)} programs, {FILE.stat().st_size} bytes in {FILE}")


if __name__ == "__main__":
    main()
