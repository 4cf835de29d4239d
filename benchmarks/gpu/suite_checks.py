"""The process that runs tests of the testkit's suite for backends on a target.

It is started as `python -m benchmarks.gpu.suite_checks SUITE TARGET FIRST COUNT`, where the suite is `corpus`
(the results of the programs) or `conformance` (all other tests), and prints a line of JSON for each test: its
name, and what is wrong, or why it was not run.
"""

from __future__ import annotations

import json
import sys
import unittest
from collections.abc import Sequence

from gossamer.targets.resolve_target import resolve_target
from gossamer_testkit import BackendSuite, SuiteCheck

CORPUS, CONFORMANCE = "corpus", "conformance"
_OF_CORPUS = "test_a_module_of_the_corpus_is_correct"


def backend_suite(target: str) -> BackendSuite:
    """Return the suite for the backend of a target."""
    backend, _ = resolve_target(target)
    suite = type("Suite", (BackendSuite,), {"backend": backend.wrapped, "targets": (target,)})
    instance = suite()
    assert isinstance(instance, BackendSuite)
    return instance


def checks_of(suite: BackendSuite, name: str) -> list[SuiteCheck]:
    """Return the tests of the corpus, or all others."""
    checks = suite.all_checks()
    return [check for check in checks if (check.method == _OF_CORPUS) == (name == CORPUS)]


def run_checks(name: str, target: str, first: int, count: int) -> None:
    """Run the tests from a number on."""
    suite = backend_suite(target)
    for check in checks_of(suite, name)[first : first + count]:
        row = {"name": check.name, "wrong": None, "skipped": None}
        try:
            suite.run_check(check)
        except AssertionError as error:
            row["wrong"] = str(error)
        except unittest.SkipTest as skipped:
            row["skipped"] = str(skipped)
        print(json.dumps(row), flush=True)


def main(arguments: Sequence[str]) -> None:
    """Run the tests that the command line names."""
    name, target, first, count = arguments
    run_checks(name, target, int(first), int(count))


if __name__ == "__main__":
    main(sys.argv[1:])
