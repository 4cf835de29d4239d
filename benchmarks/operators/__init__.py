"""The operators, one file each: problem, oracle and least work."""

from __future__ import annotations

from benchmarks.operators.attention import Attention
from benchmarks.operators.bsr_spmm import BsrSpmm
from benchmarks.operators.problem import Problem
from benchmarks.operators.sddmm import Sddmm
from benchmarks.operators.spmm import Spmm
from benchmarks.operators.spmv import Spmv

PROBLEMS: dict[str, type[Problem]] = {
    kind.op: kind for kind in (Spmm, Spmv, Sddmm, Attention, BsrSpmm)
}
