"""Writes the corpus of the testkit: `python packages/testkit/generate_corpus.py`.

It needs all of gossamer, since the kernels of the corpus are lowered by it. A test compares the files
with what this gives.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from corpus_programs import calls, control, elementwise, formats, kernels, memory, rarer  # noqa: E402

from gossamer_backend import required_capabilities  # noqa: E402
from gossamer_ir.interchange.serialization import dumps  # noqa: E402
from gossamer_ir.verify import verify  # noqa: E402
from gossamer_testkit.corpus.program import INDEX, Manifest  # noqa: E402

FOLDER = HERE / "src" / "gossamer_testkit" / "corpus" / "programs"


def programs() -> Iterator[tuple[Manifest, bytes]]:
    """The manifest and the wire text of every program."""
    for family in (elementwise, memory, control, calls, rarer, kernels, formats):
        for source in family.sources():
            module = verify(source.module)
            needs = tuple(sorted(required_capabilities(module)))
            manifest = Manifest(
                source.name, source.says, needs, source.cases, source.oracle, source.options
            )
            yield manifest, dumps(module)


def files() -> dict[str, bytes]:
    """The contents of every file of the corpus, by name."""
    found: dict[str, bytes] = {}
    manifests: dict[str, Manifest] = {}
    for manifest, text in programs():
        if manifest.name in manifests:
            raise ValueError(f"two programs are called {manifest.name}")
        manifests[manifest.name] = manifest
        found[f"{manifest.name}.json"] = text
    rows = [msgspec.json.encode(manifests[name]) for name in sorted(manifests)]
    found[INDEX] = b"[\n" + b",\n".join(rows) + b"\n]\n"
    return found


def main() -> None:
    """Writes the files that differ, and removes those that are no more."""
    wanted = files()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.json"):
        if path.name not in wanted:
            path.unlink()
    for name, contents in wanted.items():
        path = FOLDER / name
        if not path.exists() or path.read_bytes() != contents:
            path.write_bytes(contents)
    print(f"{len(wanted) - 1} programs, {sum(map(len, wanted.values()))} bytes in {FOLDER}")


if __name__ == "__main__":
    main()
