"""The worker in the environment of PyTorch: reads one request per line and answers each.

Requests and answers are JSON objects; `do` names the request. Arrays travel as files in a folder.
This file imports nothing else of this repository.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Request = dict[str, Any]
Answer = dict[str, Any]


class Worker:
    """The last problem loaded, and the call that solves it."""

    def __init__(self) -> None:
        self.call: Callable[[], Any] = lambda: None
        self.values: Callable[[], Any] = lambda: None

    def version(self, request: Request) -> Answer:
        """torch's version."""
        return {"version": torch.__version__}

    def load(self, request: Request) -> Answer:
        """Reads a problem from `file`: `op`, `shape`, the matrix and the operands."""
        with np.load(request["file"]) as stored:
            arrays = {name: torch.from_numpy(stored[name]) for name in stored.files}
        try:
            self.prepare(request["op"], tuple(request["shape"]), arrays)
            self.call()
        except RuntimeError as error:
            return {"error": str(error).partition("\n")[0]}
        return {}

    def prepare(self, op: str, shape: tuple[int, ...], arrays: dict[str, Any]) -> None:
        """Prepares the call, with a given output if PyTorch takes one; `values` is its result."""
        make = torch.sparse_bsr_tensor if op == "bsr_spmm" else torch.sparse_csr_tensor
        matrix = make(arrays["indptr"], arrays["indices"], arrays["data"], size=shape)
        first = arrays["operand0"]
        if op == "attention":
            self.attend(matrix, *(arrays[f"operand{number}"] for number in range(3)))
            return
        if op == "sddmm":  # in place: with another output torch would copy the pattern into it
            second = arrays["operand1"].t()
            self.call = lambda: torch.sparse.sampled_addmm(
                matrix, first, second, beta=0.0, out=matrix
            )
            self.values = matrix.values
            return
        result = torch.empty((shape[0], *first.shape[1:]), dtype=first.dtype)
        add = torch.addmv if first.ndim == 1 else torch.addmm
        self.call = lambda: add(result, matrix, first, beta=0, out=result)
        self.values = lambda: result

    def attend(self, matrix: Any, q: Any, k: Any, v: Any) -> None:
        """Computes attention: sampled products in place, a softmax by segment reductions, a product."""
        indptr, indices = matrix.crow_indices(), matrix.col_indices()
        rows = torch.repeat_interleave(torch.arange(len(indptr) - 1), indptr.diff())
        offsets, transposed, scale = indptr.long(), k.t(), q.shape[1] ** -0.5
        result = torch.empty((matrix.shape[0], v.shape[1]), dtype=v.dtype)

        def attended() -> None:
            torch.sparse.sampled_addmm(matrix, q, transposed, beta=0.0, alpha=scale, out=matrix)
            scores = matrix.values()
            most = torch.segment_reduce(scores, "max", offsets=offsets)
            powers = torch.exp(scores - most[rows])
            total = torch.segment_reduce(powers, "sum", offsets=offsets)
            shares = torch.sparse_csr_tensor(
                indptr, indices, powers / total[rows], size=matrix.shape
            )
            torch.addmm(result, shares, v, beta=0, out=result)

        self.call, self.values = attended, lambda: result

    def threads(self, request: Request) -> Answer:
        """Sets the number of threads."""
        torch.set_num_threads(request["count"])
        return {}

    def sample(self, request: Request) -> Answer:
        """Seconds per call over `calls` calls in a row; 0 for none."""
        call, calls = self.call, request["calls"]
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return {"seconds": (time.perf_counter() - start) / max(calls, 1)}

    def result(self, request: Request) -> Answer:
        """Writes the result to `file`."""
        np.save(request["file"], self.values().numpy())
        return {}

    def clock(self, request: Request) -> Answer:
        """CPU seconds that this process has used."""
        return {"seconds": time.process_time()}


def main() -> None:
    """Answers requests until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(
        sys.stderr.fileno(), sys.stdout.fileno()
    )  # output of libraries must not mix with the answers
    warnings.filterwarnings("ignore")
    worker = Worker()
    for line in sys.stdin:
        request: Request = json.loads(line)
        answer = getattr(worker, request["do"])(request)
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
