"""The corpus of the testkit is what its generator produces, and the tiny plugin passes its suite."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import msgspec
import pytest

from gossamer_ir import structural_equal
from gossamer_ir.interchange.serialization import loads
from gossamer_testkit import BackendSuite
from gossamer_testkit.corpus.program import Entry

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = ROOT / "packages" / "backend" / "tests" / "plugins"
ENTRIES = msgspec.json.Decoder(Entry)
GENERATOR = ROOT / "packages" / "testkit" / "generate_corpus.py"


def load(name, path):
    """Loads a file as a module."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


class TestTinyPlugin(BackendSuite):
    backend = load("tiny_plugin_under_test", PLUGINS / "gossamer_tiny.py").TinyInterpreter()


@pytest.fixture(scope="module")
def generator():
    before = list(sys.path)
    yield load("corpus_generator", GENERATOR)
    sys.path[:] = before


def test_the_file_is_what_the_generator_gives(generator):
    """The modules are equal up to renaming, and the manifests are equal, in the same order."""
    wanted, there = (
        {entry.manifest.name: entry for entry in map(ENTRIES.decode, lines)}
        for lines in (generator.lines(), generator.stored())
    )
    changed = [
        name
        for name in wanted.keys() & there.keys()
        if wanted[name].manifest != there[name].manifest
        or not structural_equal(loads(wanted[name].module), loads(there[name].module))
    ]
    assert (list(wanted), sorted(changed)) == (list(there), []), (
        "run python packages/testkit/generate_corpus.py"
    )
