"""The modules that first calls take are those of the scripts, and the imports that this saves are saved."""

import subprocess
import sys
from importlib import import_module

import pytest

from gossamer.operator_calls.fast_path.index_checks import PARSED_CHECKS, index_tests, parsed_module
from gossamer.operators import ALL_NAMES, operator_named
from gossamer_backend.compiled_checks.check_program import program_of_checks
from gossamer_ir.script import parse_module


@pytest.mark.parametrize("name", ALL_NAMES)
def test_the_module_of_an_operator_is_its_parsed_script(name):
    program = operator_named(name).program
    assert parse_module(program.script) == import_module(program.parsed).PARSED


@pytest.mark.parametrize("dtype", PARSED_CHECKS)
def test_the_module_of_a_check_is_its_parsed_script(dtype):
    expected = program_of_checks(index_tests(dtype, dtype))
    assert parsed_module(PARSED_CHECKS[dtype]) == expected


def test_the_module_of_an_operator_needs_no_parser():
    code = (
        "import sys; from gossamer.operators.spmv import PROGRAM; "
        "from gossamer.operator_calls.operator_program import Variant, module_of; "
        "module_of(PROGRAM, Variant()); print(*sys.modules)"
    )
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "gossamer.operator_calls.parsed_programs.spmv" in modules
    assert "gossamer_ir.script.parse" not in modules
