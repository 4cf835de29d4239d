"""The plugin `pairs` of pytest keeps every pair of values, and every case of tests with fewer parameters."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations, product

import pytest

from tests.doctests.docstrings import run_docstrings
from tests.pytest_plugins.pairs import cover_pairs, pairs_of

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


def all_pairs(cases):
    return set().union(*map(pairs_of, cases))


@pytest.mark.parametrize("sizes", [(2, 3, 4), (5, 1, 2, 2), (3, 3, 3, 3)])
def test_every_pair_is_in_a_case_that_is_kept(sizes):
    cases = list(product(*map(range, sizes)))
    kept = [cases[number] for number in cover_pairs(cases)]
    assert all_pairs(kept) == all_pairs(cases)
    assert len(all_pairs(cases)) == sum(a * b for a, b in combinations(sizes, 2))
    assert len(kept) < len(cases)


def test_of_a_table_with_gaps_no_pair_is_lost():
    cases = [case for case in product(range(3), range(4), range(5)) if sum(case) % 3 or 2 in case]
    kept = [cases[number] for number in cover_pairs(cases)]
    assert all_pairs(kept) == all_pairs(cases)


def test_with_two_parameters_every_case_is_kept():
    assert cover_pairs(list(product(range(3), range(4)))) == [*range(12)]


def test_the_examples_run():
    assert run_docstrings("tests.pytest_plugins.pairs") > 0


TESTS = """
import pytest

@pytest.fixture(params=["u", "v"])
def third(request):
    return request.param

@pytest.mark.parametrize("second", [[1], [2]])
@pytest.mark.parametrize(("first", "same"), [("a", 1), ("b", 1)])
def test_three(first, same, second, third):
    pass

@pytest.mark.parametrize("second", "xy")
@pytest.mark.parametrize("first", "ab")
class TestTwo:
    def test_two(self, first, second):
        pass

    def test_three(self, first, second, third):
        pass

def test_none():
    pass
"""


def test_only_cases_of_tests_with_three_parameters_are_left_out(root, tmp_path):
    """Arguments of one mark are one parameter, and values need no hash."""
    (tmp_path / "test_sample.py").write_text(TESTS)
    options = ("-q", "--collect-only", "-p", "no:cacheprovider", "-p", "tests.pytest_plugins.pairs")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]
    assert sum(name.startswith("test_three[") for name in names) == 4
    assert sum(name.startswith("TestTwo::test_three[") for name in names) == 4
    assert sum(name.startswith("TestTwo::test_two[") for name in names) == 4
    assert names[-1] == "test_none"
    assert "13/21 tests collected (8 deselected)" in done.stdout
