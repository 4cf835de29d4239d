"""The tiny plugin passes the suite of the testkit."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from gossamer_testkit import BackendSuite

pytestmark = pytest.mark.no_error_examples

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "packages" / "backend" / "tests" / "plugins"


def load(name, path):
    """Loads a file as a module."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


class TestTinyPlugin(BackendSuite):
    backend = load("tiny_plugin_under_test", PLUGINS / "gossamer_tiny.py").TinyInterpreter()
