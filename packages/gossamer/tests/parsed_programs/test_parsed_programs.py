"""The modules that first calls take are those of the scripts, and the imports that this saves are saved."""

import subprocess
import sys
from importlib import import_module

import pytest

from gossamer.operators import ALL_NAMES, operator_named
from gossamer_ir.script import parse_module


@pytest.mark.parametrize("name", ALL_NAMES)
def test_the_module_of_an_operator_is_its_parsed_script(name):
    program = operator_named(name).program
    assert parse_module(program.script) == import_module(program.parsed).PARSED


def test_the_module_of_an_operator_needs_no_parser():
    code = (
        "import sys; from gossamer.operators.spmv import PROGRAM; "
        "from gossamer.operator_calls.operator_program import Variant, module_of; "
        "module_of(PROGRAM, Variant()); print(*sys.modules)"
    )
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "gossamer.parsed_programs.spmv" in modules
    assert "gossamer_ir.script.parse" not in modules
