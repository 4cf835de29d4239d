"""Prepares a program or baseline of an example, and prints a time for each line of the input."""

from __future__ import annotations

import json
import sys
import time

import gossamer as gs
from examples import EXAMPLES
from examples.example import Call, Example, UnavailableError

SAMPLE_SECONDS = 0.02


def main(example: str, case: str, name: str, threads: str) -> None:
    """Prepare and verify a program or baseline, and take a sample for each line of the input."""
    gs.set_num_threads(int(threads))
    try:
        call, prepared = verified_call(EXAMPLES[example], case, name)
    except UnavailableError as error:
        print(json.dumps({"unavailable": str(error)}), flush=True)
        return
    print(json.dumps(prepared), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"ms": sample(call) * 1e3}), flush=True)


def verified_call(example: Example, case: str, name: str) -> tuple[Call, dict[str, float]]:
    """Return a verified call, with the seconds of its preparation and its error.

    Raises `UnavailableError`, and `ValueError` for a wrong result.
    """
    inputs = {**example.cases, **example.datasets}[case]()
    start = time.perf_counter()
    call = {**example.programs, **example.baselines}[name](inputs)
    seconds = time.perf_counter() - start
    error = example.relative_error(inputs, call())
    if not error <= 1:
        raise ValueError(f"The error of '{name}' is {error:.2g} times the allowed one.")
    return call, {"prepare_seconds": seconds, "relative_error": error}


def sample(call: Call) -> float:
    """Return the mean seconds of a call."""
    call()
    count, begin = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < SAMPLE_SECONDS:
        call()
        count += 1
    return elapsed / count


if __name__ == "__main__":
    main(*sys.argv[1:])
