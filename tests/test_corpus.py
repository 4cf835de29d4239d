"""The corpus of the testkit is what its generator gives today, and the tiny plugin passes its suite."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from gossamer_ir import structural_equal
from gossamer_ir.interchange.serialization import loads
from gossamer_testkit import BackendSuite

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = ROOT / "packages" / "backend" / "tests" / "plugins"
GENERATOR = ROOT / "packages" / "testkit" / "generate_corpus.py"


def load(name, path):
    """The module of a file, under its name."""
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


def test_the_files_are_what_the_generator_gives(generator):
    """Modules up to renaming, and the manifests."""
    wanted = generator.files()
    there = {path.name: path.read_bytes() for path in generator.FOLDER.iterdir()}
    changed = [
        name
        for name in wanted.keys() & there.keys() - {generator.INDEX}
        if not structural_equal(loads(wanted[name]), loads(there[name]))
    ]
    new, gone = sorted(wanted.keys() - there.keys()), sorted(there.keys() - wanted.keys())
    is_indexed = wanted[generator.INDEX] == there[generator.INDEX]
    if changed or new or gone or not is_indexed:
        pytest.fail(
            f"changed: {sorted(changed)}, new: {new}, gone: {gone}, index as it was: {is_indexed}; "
            "run python packages/testkit/generate_corpus.py"
        )
