"""The contenders, one file each."""

from __future__ import annotations

from functools import partial

from benchmarks.compiling import FAST
from benchmarks.peers import gossamer, mkl, numba, scipy, taco_like
from benchmarks.peers.peer import Prepare
from benchmarks.peers.torch import Torch

OURS = "gossamer"
NAMES = (
    "gossamer",
    "gossamer_op",
    "scipy",
    "mkl",
    "mkl_plain",
    "mkl_bsr",
    "numba",
    "numba_fused",
    "torch",
    "taco_like",
    "taco_fast",
)


def contenders(torch: Torch) -> dict[str, Prepare]:
    """Returns all contenders by name. `gossamer` and those of MKL are prepared calls on given arrays;
    `gossamer_op` is the public operator. `mkl` uses hint and optimize, `mkl_plain` only creates the
    handle. `numba_fused` is one loop over rows instead of a composition of several."""
    return {
        OURS: gossamer.prepare_bound,
        "gossamer_op": gossamer.prepare_operator,
        "scipy": scipy.prepare,
        "mkl": partial(mkl.prepare, optimize=True),
        "mkl_plain": partial(mkl.prepare, optimize=False),
        "mkl_bsr": mkl.prepare_blocks,
        "numba": numba.prepare,
        "numba_fused": numba.prepare_fused,
        "torch": torch.prepare,
        "taco_like": taco_like.prepare,
        "taco_fast": lambda problem, threads: taco_like.prepare(problem, threads, FAST),
    }
