"""First calls import what they need and little else: imports are most of their time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CALLS = """
import json, sys
import numpy, scipy.sparse
import gossamer

rows = numpy.ones((8, 64), dtype="float32")
matrix = scipy.sparse.eye_array(8, format="csr", dtype="float32")
operands = {"spmm": (rows,), "attention": (rows, rows, rows)}
for _ in range(int(sys.argv[2])):
    getattr(gossamer, sys.argv[1])(matrix, *operands[sys.argv[1]])
print(json.dumps([name for name in sys.modules if name.startswith("gossamer")]))
"""
MAX_MODULES = {"spmm": 589, "attention": 611}
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
    "gossamer_lower.search",
    "gossamer_testkit",
    "gossamer_tune",
)
"""Modules and packages that operators on SciPy matrices do not need."""
RULES = "gossamer_schedule.rules.library"


@pytest.fixture
def imported(tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))

    def modules_after(name, *, calls):
        command = (sys.executable, "-c", CALLS, name, str(calls))
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return json.loads(output)

    return modules_after


@pytest.mark.parametrize("name", MAX_MODULES)
def test_a_first_call_imports_only_modules_that_it_needs(name, imported):
    modules = imported(name, calls=1)
    assert len(modules) <= MAX_MODULES[name]
    assert [module for module in modules if module.startswith(OTHERS)] == []


def test_a_second_call_compiles_its_check_without_the_parser_and_without_rules(imported):
    first, modules = (imported("spmm", calls=calls) for calls in (1, 2))
    added = set(modules) - set(first)
    assert "gossamer.operator_calls.parsed_programs.index_check_int32" in added
    assert [name for name in added if name.startswith(("gossamer_ir.script", RULES))] == []
