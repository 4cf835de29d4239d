"""`programs.jsonl.gz` of the testkit: the corpus of programs, from `tools/corpus_programs`.

All packages of gossamer are needed, because they lower the kernels of the corpus.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gossamer_backend import required_capabilities
from gossamer_ir import structural_equal
from gossamer_ir.interchange.serialization import dumps, loads
from gossamer_ir.verify import verify
from gossamer_testkit.corpus.program import PROGRAMS_FILE, Entry, Manifest
from tools import ROOT
from tools.corpus_programs import (
    control,
    every_operation,
    launches_and_loops,
    memory_accesses,
    optional_capabilities,
    other_formats,
    scheduled_operators,
)

FILE = ROOT / "packages/testkit/src/gossamer_testkit/corpus" / PROGRAMS_FILE
FAMILIES = (
    every_operation,
    memory_accesses,
    control,
    launches_and_loops,
    optional_capabilities,
    scheduled_operators,
    other_formats,
)


def files() -> dict[Path, bytes]:
    """Return the compressed corpus: the stored bytes, if they hold the same programs up to renaming.

    Compressed bytes depend on the version of zlib.
    """
    entries = sorted_entries()
    stored = stored_entries()
    if len(entries) == len(stored) and all(map(is_same, entries, stored)):
        return {FILE: FILE.read_bytes()}
    text = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    return {FILE: gzip.compress(text, mtime=0)}


def is_same(entry: Entry, stored: Entry) -> bool:
    """Return whether two entries have equal manifests, and modules that are equal up to renaming."""
    return entry.manifest == stored.manifest and structural_equal(
        loads(bytes(entry.module)), loads(bytes(stored.module))
    )


def sorted_entries() -> list[Entry]:
    """Return the entries of the file, sorted by the names of their programs."""
    entries: dict[str, Entry] = {}
    for entry in generated_entries():
        name = entry.manifest.name
        if name in entries:
            raise ValueError(f"two programs have the name '{name}'")
        entries[name] = entry
    return [entries[name] for name in sorted(entries)]


def generated_entries() -> Iterator[Entry]:
    """Yield the manifest and the wire text of every program."""
    for family in FAMILIES:
        for source in family.sources():
            module = verify(source.module)
            needs = tuple(sorted(required_capabilities(module)))
            manifest = Manifest(
                source.name, source.says, needs, source.cases, source.oracle, source.options
            )
            yield Entry(manifest, msgspec.Raw(dumps(module)))


def stored_entries() -> list[Entry]:
    """Return the entries of the existing file; none if there is no file."""
    lines = gzip.decompress(FILE.read_bytes()).splitlines() if FILE.exists() else []
    return msgspec.json.decode(b"[" + b",".join(lines) + b"]", type=list[Entry])
