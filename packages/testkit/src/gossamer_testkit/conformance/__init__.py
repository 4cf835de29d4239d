"""The conformance suite for backends: `BackendSuite`, and the parts that it is made of."""

from __future__ import annotations

from gossamer_testkit.conformance.code import CodeChecks
from gossamer_testkit.conformance.metadata import MetadataChecks
from gossamer_testkit.conformance.refusals import RefusalChecks
from gossamer_testkit.conformance.results import ResultChecks
from gossamer_testkit.conformance.threads import ThreadChecks


class BackendSuite(MetadataChecks, CodeChecks, RefusalChecks, ResultChecks, ThreadChecks):
    """What every backend has to pass. A test class of pytest derives from it in three lines:

        class TestMine(BackendSuite):
            backend = MyBackend()
            targets = ("mine", "mine:option=1")

    Without `targets` they are those that the backend offers. Each program of the corpus that the
    backend's capabilities cover is compiled for each target, twice and in another process, and called;
    a target that does not work on this machine is compiled for only. What is left out is skipped
    with the reason.

    >>> sum(name.startswith("test_") for name in dir(BackendSuite))
    17
    """


__all__ = ["BackendSuite"]
