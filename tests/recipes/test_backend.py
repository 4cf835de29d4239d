"""The recipe "Add a backend" in docs/extending has all members of a backend, and the tests that it names
exist."""

from __future__ import annotations

import re

import pytest

from gossamer_backend import Backend
from gossamer_testkit import BackendSuite
from tests.recipes.recipe_pages import recipe

pytestmark = pytest.mark.unserialized


@pytest.fixture(scope="module")
def rows(pytestconfig):
    """The tests of each member, by its name."""
    table = recipe(pytestconfig.rootpath, "Add a backend").partition("| member | must | test |")[2]
    return dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", table, re.MULTILINE))


def test_all_members_of_a_backend_are_in_the_table(rows):
    assert list(rows) == [name for name in vars(Backend) if not name.startswith("_")]


def test_the_conformance_suite_has_the_tests_that_the_table_names(rows):
    named = {name for cell in rows.values() for name in re.findall(r"`(\w+)`", cell)}
    assert len(named) >= len(rows)
    assert {name for name in named if not hasattr(BackendSuite, name)} == set()
