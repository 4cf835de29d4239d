"""The examples in the docstrings of wire format, schema, equality, signature and verifiers."""

import doctest
import importlib

import pytest

MODULES = ("wire", "schema", "equality", "verify", "verify.formats")


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_hold(name):
    found = doctest.testmod(importlib.import_module(f"gossamer_ir.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
