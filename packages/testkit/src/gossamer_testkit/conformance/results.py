"""Checks the results of kernels against oracles that are independent of any backend."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.errors import GossamerError, UserError
from gossamer_ir.interpret import run
from gossamer_testkit.conformance.base import Checks, fail, skip
from gossamer_testkit.corpus.case import Case, call, differences
from gossamer_testkit.corpus.program import Program, corpus_program


class ResultChecks(Checks):
    """Every case of every program of the corpus."""

    def test_a_module_of_the_corpus_is_correct(self, program: str, target: str) -> None:
        """Results equal the oracle's; calls that must fail raise the expected code and name."""
        corpus_entry = corpus_program(program)
        missing = corpus_entry.lacks(self.backend.capabilities)
        if missing:
            skip(f"{self.backend.name} does not declare {', '.join(missing)}")
        kernel = self.kernel(corpus_entry, target)
        for case in corpus_entry.cases():
            wrong = mismatch(kernel, corpus_entry, case)
            if wrong is not None:
                # Whether the kernel or the oracle is wrong is the first question of a reader.
                opinion = second_opinion(corpus_entry, case) if case.raises is None else None
                fail(" ".join(filter(None, (f"{program}, case '{case.name}':", wrong, opinion))))


def mismatch(kernel: Callable[..., object], program: Program, case: Case) -> str | None:
    """Return a description of the failure of a call, None if it is correct."""
    try:
        arrays = call(kernel, case)
    except UserError as error:
        if error.code != case.raises:
            return f"the call fails: {error}"
        if case.names is None or case.names in str(error):
            return None
        return f"the error does not name {case.names}: {error}"
    if case.raises is not None:
        return f"the call succeeds; expected the error {case.raises}."
    return " ".join(differences(case, arrays, program.expected_results(case))) or None


def second_opinion(program: Program, case: Case) -> str:
    """Return a sentence for the failure message: if the reference interpreter agrees with the oracle."""
    module = program.module
    try:
        arrays = call(lambda **values: run(module, values), case)
    except GossamerError as error:
        return f"(The reference interpreter fails: {error})"
    agrees = not differences(case, arrays, program.expected_results(case))
    return f"(The reference interpreter {'agrees' if agrees else 'disagrees'} with the oracle.)"
