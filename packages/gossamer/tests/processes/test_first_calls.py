"""A first call imports what it needs and little else: imports are most of its time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

FIRST_CALL = """
import json, sys
import numpy, scipy.sparse
import gossamer

rows = numpy.ones((8, 64), dtype="float32")
matrix = scipy.sparse.eye_array(8, format="csr", dtype="float32")
operands = {"spmm": (rows,), "attention": (rows, rows, rows)}
getattr(gossamer, sys.argv[1])(matrix, *operands[sys.argv[1]])
print(json.dumps([name for name in sys.modules if name.startswith("gossamer")]))
"""
MOST_MODULES = {"spmm": 608, "attention": 632}
"""The modules of the project that a call with nothing cached may import. Each takes a quarter of a
millisecond: raise a limit only for modules that the call needs."""
OTHERS = (
    "gossamer.cli",
    "gossamer_backend.arguments.dlpack",
    "gossamer_backend.export",
    "gossamer_formats.decomposition",
    "gossamer_formats.io",
    "gossamer_ir.interpret",
    "gossamer_ir.script.printer",
    "gossamer_ir.verify.formats",
    "gossamer_lower.device",
    "gossamer_lower.inspector",
    "gossamer_lower.passes",
    "gossamer_testkit",
    "gossamer_tune",
)
"""Modules and packages that operators on SciPy matrices do not need."""


@pytest.mark.parametrize("name", MOST_MODULES)
def test_a_first_call_imports_only_modules_that_it_needs(name, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    command = (sys.executable, "-c", FIRST_CALL, name)
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    modules = json.loads(output)
    assert len(modules) <= MOST_MODULES[name]
    assert [module for module in modules if module.startswith(OTHERS)] == []
