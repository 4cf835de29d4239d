"""Checks of kernels called, compiled and run by several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gossamer_backend import get_num_threads, set_num_threads
from gossamer_testkit.conformance.base import Checks, require, selected_program
from gossamer_testkit.conformance.fingerprint import fingerprint
from gossamer_testkit.corpus.case import Case, call, same_bytes
from gossamer_testkit.corpus.program import Program

THREADS = 2
COUNTS = (1, 2, 3, 7)
"""The numbers of threads that a kernel is run with."""

REPEATS = 2
REPEATED_CASES = 6
"""The number of cases of a program that are repeated: the largest ones, which use several threads."""


class ThreadChecks(Checks):
    """Kernels and compilations in several threads."""

    def test_two_threads_may_call_one_kernel(self, covered: str, target: str) -> None:
        """Each call gives the result of a call by a single thread."""
        program = selected_program(covered)
        kernel = self.kernel(program, target)
        cases = _callable_cases(program)
        alone = [call(kernel, case) for case in cases]
        wrong: list[str] = []

        def work() -> None:
            for case, wanted in zip(cases, alone, strict=True):
                if not same_bytes(call(kernel, case), wanted):
                    wrong.append(case.name)

        run_in_threads(work)
        require(not wrong, f"Called by two threads at once, it computes something else: {wrong}.")

    def test_the_number_of_threads_changes_nothing(self, parallel: str, target: str) -> None:
        """Repeated calls with several numbers of threads give the same bits."""
        program = selected_program(parallel)
        kernel = self.kernel(program, target)
        before = get_num_threads()
        try:
            for case in _callable_cases(program):
                self._compare_counts(kernel, case)
        finally:
            set_num_threads(before)

    def _compare_counts(self, kernel: Callable[..., object], case: Case) -> None:
        # One thread has no races, so that its bits are the ones to compare with.
        set_num_threads(1)
        wanted = call(kernel, case)
        for count in COUNTS * REPEATS:
            set_num_threads(count)
            require(
                same_bytes(call(kernel, case), wanted),
                f"With {count} threads, it computes something else in the case '{case.name}'.",
            )

    def test_two_threads_may_compile_at_once(self, target: str) -> None:
        """Each compilation gives the code of a compilation by a single thread."""
        # A few are enough to be compiled at the same time; other checks compile all of them.
        programs = self.all_covered()[:8]
        wanted = {program.name: fingerprint(self.artifact(program, target)) for program in programs}
        wrong: list[str] = []

        def work() -> None:
            for program in programs:
                if fingerprint(self.compile_again(program, target)) != wanted[program.name]:
                    wrong.append(program.name)

        run_in_threads(work)
        require(not wrong, f"Compiled by two threads at once, these differ: {wrong}.")


def run_in_threads(work: Callable[[], None]) -> None:
    """Run a function in several threads that start together; re-raise an error of any of them."""
    start = threading.Barrier(THREADS)

    def run() -> None:
        start.wait()
        work()

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(run) for _ in range(THREADS)]:
            done.result()


def _callable_cases(program: Program) -> list[Case]:
    # A call that raises leaves its arrays in any state, which cannot be compared.
    cases = [case for case in program.cases() if case.raises is None]
    return sorted(cases, key=_bytes)[-REPEATED_CASES:]


def _bytes(case: Case) -> int:
    return sum(value.nbytes for value in case.values.values() if isinstance(value, np.ndarray))
