"""The contenders, one file each. Each runs in a process of its own."""

from __future__ import annotations

from importlib import import_module

from benchmarks.contenders.contender import PRODUCTS, Contender, Prepare

OURS = "gossamer"
SLICED = "gossamer_sell"
CHOSEN = "gossamer_prepared"
GOSSAMER = ("gossamer", "gossamer-generic-cpu", "llvmlite")
MKL = {"MKL_THREADING_LAYER": "intel"}
NUMBA = {"NUMBA_THREADING_LAYER": "omp"}
ATTENTION, SDDMM = ("attention",), ("sddmm",)
CONTENDERS = {
    OURS: Contender(
        "gossamer", (*PRODUCTS, *SDDMM, *ATTENTION), "prepare_bound", packages=GOSSAMER
    ),
    "gossamer_op": Contender(
        "gossamer", ("spmm", "spmv", *SDDMM, *ATTENTION), "prepare_operator", usual=()
    ),
    SLICED: Contender("gossamer", ("spmv",), "prepare_sliced", packages=GOSSAMER),
    CHOSEN: Contender("gossamer", PRODUCTS, "prepare_chosen", packages=GOSSAMER),
    "scipy": Contender(
        "scipy", (*PRODUCTS, *ATTENTION), packages=("numpy", "scipy"), threaded=False
    ),
    "mkl": Contender("mkl", PRODUCTS, packages=("mkl", "intel-openmp"), environment=MKL),
    "mkl_plain": Contender(
        "mkl",
        (*PRODUCTS, *ATTENTION),
        "prepare_plain",
        usual=ATTENTION,
        environment={"MKL_THREADING_LAYER": "gnu", **NUMBA},
    ),
    "mkl_bsr": Contender("mkl", ("bsr_spmm",), "prepare_blocks", environment=MKL),
    "numba": Contender(
        "numba", (*PRODUCTS, *SDDMM, *ATTENTION), packages=("numba",), environment=NUMBA
    ),
    "numba_fused": Contender("numba", ATTENTION, "prepare_fused", environment=NUMBA),
    "torch": Contender("torch", (*PRODUCTS, *SDDMM, *ATTENTION), packages=("torch",)),
    "taco_like": Contender("taco_like", (*PRODUCTS, *SDDMM), usual=()),
    "taco_fast": Contender("taco_like", (*PRODUCTS, *SDDMM), "prepare_fast", usual=SDDMM),
}
"""`gossamer` and those of MKL are prepared calls on given arrays; `gossamer_op` is the public operator, and
`gossamer_sell` an operator bound to a matrix that was converted to SELL,
`gossamer_prepared` the public operator with the matrix in the format that `gossamer.prepare` chooses.
`mkl` uses hint and optimize, `mkl_plain` only creates the handle. Its attention combines loops of Numba with
MKL's product, so that both use the same threads (GNU). `numba_fused` is one loop over rows instead of a
composition of several."""
NAMES = tuple(CONTENDERS)


def load_prepare(name: str) -> Prepare:
    """Import the function of a contender; an ImportError if its library is not installed."""
    contender = CONTENDERS[name]
    module = import_module(f"benchmarks.contenders.{contender.module}")
    prepare: Prepare = getattr(module, contender.function)
    return prepare
