"""The process that runs programs of the testkit's corpus as kernels of a target.

It is started as `python -m benchmarks.gpu.corpus_checks TARGET FIRST COUNT`, and prints a line of JSON for
each program: its name, and what is wrong, or why it was not run.
"""

from __future__ import annotations

import json
import sys
import unittest

from gossamer.resolve_target import resolve_target
from gossamer_testkit import BackendSuite, corpus_names


def check_corpus(target: str, first: int, count: int) -> None:
    """Run the programs from a number on."""
    backend, _ = resolve_target(target)
    suite = type("Suite", (BackendSuite,), {"backend": backend.wrapped, "targets": (target,)})()
    for name in corpus_names()[first : first + count]:
        row = {"name": name, "wrong": None, "skipped": None}
        try:
            suite.test_a_module_of_the_corpus_is_correct(name, target)
        except AssertionError as error:
            row["wrong"] = str(error)
        except unittest.SkipTest as skipped:
            row["skipped"] = str(skipped)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    check_corpus(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
