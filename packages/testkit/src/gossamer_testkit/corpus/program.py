"""The corpus: flat modules in one file, each with a manifest that names its inputs and its oracle."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

import msgspec

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.serialization import loads
from gossamer_ir.nodes import Module
from gossamer_support.typed_calls import typed
from gossamer_testkit.corpus.case import Case, Expected
from gossamer_testkit.corpus.inputs import INPUT_GENERATORS
from gossamer_testkit.corpus.oracles import ORACLES

CaseOptions: TypeAlias = dict[str, Any]
"""The options of an input generator and an oracle: values that JSON can encode."""

PROGRAMS_FILE = "programs.jsonl.gz"
"""The file of all programs: an `Entry` in each line, sorted by name."""


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data of one program: a sentence about it (`says`), the capabilities that it needs, the generator
    of its cases (a key of `INPUT_GENERATORS`), and its oracle (a key of `ORACLES`).

    >>> corpus_program("guard").manifest.cases, corpus_program("guard").manifest.oracle
    ('guard_cases', 'gathered')
    """

    name: str
    says: str
    capabilities: tuple[str, ...]
    cases: str
    oracle: str
    options: CaseOptions = {}


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file: a manifest and the wire text of its module."""

    manifest: Manifest
    module: msgspec.Raw


class Program(NamedTuple):
    """One program of the corpus; `text` is the wire text of its flat module.

    >>> program = corpus_program("copy_int32")
    >>> case = list(program.cases())[1]
    >>> case.values["x"], program.expected_results(case)["y"].array
    (array([0], dtype=int32), array([0], dtype=int32))
    """

    manifest: Manifest
    text: bytes

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.manifest.name

    @property
    def module(self) -> Module:
        """The module, decoded from its text."""
        return loads(self.text)

    def cases(self) -> Iterator[Case]:
        """Return the cases to call it with, which are deterministic."""
        return INPUT_GENERATORS[self.manifest.cases](self.manifest.options)

    def expected_results(self, case: Case) -> dict[str, Expected]:
        """Return the expected contents of the arrays that the program writes."""
        return ORACLES[self.manifest.oracle](case.values, self.manifest.options)

    def lacks(self, capabilities: Iterable[str]) -> tuple[str, ...]:
        """Return the capabilities that the program needs and that are not among these, sorted."""
        return tuple(sorted(frozenset(self.manifest.capabilities) - frozenset(capabilities)))


def corpus_names() -> tuple[str, ...]:
    """Return the names of all programs, sorted.

    >>> "spmm_float32_int32_33" in corpus_names()
    True
    """
    return tuple(_entries())


@typed
@cache
def corpus_program(name: str) -> Program:
    """Return a program by name; raise `ArgumentError` (`corpus.unknown`) if there is none.

    >>> program = corpus_program("gather_float32x4")
    >>> program.manifest.capabilities
    ('dtype.float32', 'vectors.fixed')
    >>> [case.name for case in program.cases()][:3]
    ['0 elements', '1 element', '3 elements']
    """
    if name not in _entries():
        raise ArgumentError(
            "corpus.unknown",
            f"The corpus has no program '{name}'.",
            hint="gossamer_testkit.corpus_names() lists those it has.",
        )
    entry = _entries()[name]
    return Program(entry.manifest, bytes(entry.module))


@cache
def _entries() -> dict[str, Entry]:
    lines = gzip.decompress((files("gossamer_testkit.corpus") / PROGRAMS_FILE).read_bytes())
    entries = msgspec.json.Decoder(Entry).decode_lines(lines)
    # Modules stay raw: most tests decode few of the many programs.
    return {entry.manifest.name: entry for entry in entries}
