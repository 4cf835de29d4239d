"""The conformance suite for backends: `BackendSuite` and its parts."""

from __future__ import annotations

from gossamer_testkit.conformance.code import CodeChecks
from gossamer_testkit.conformance.concurrency import ThreadChecks
from gossamer_testkit.conformance.metadata import MetadataChecks
from gossamer_testkit.conformance.refusals import RefusalChecks
from gossamer_testkit.conformance.results import ResultChecks


class BackendSuite(MetadataChecks, CodeChecks, RefusalChecks, ResultChecks, ThreadChecks):
    """The tests that every backend must pass. A pytest class derives from it in three lines:

        class TestMine(BackendSuite):
            backend = MyBackend()
            targets = ("mine", "mine:option=1")

    The default of `targets` are the targets that the backend offers. Each program of the corpus that
    the backend's capabilities cover is compiled for each target, twice and in another process, and
    called. If a target does not work on this machine, programs are compiled for it but not called.
    Tests that cannot run are skipped with the reason.

    >>> sum(name.startswith("test_") for name in dir(BackendSuite))
    18
    """
