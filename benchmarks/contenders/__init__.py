"""The contenders, one file each. Each runs in a process of its own."""

from __future__ import annotations

from importlib import import_module

from benchmarks.contenders.contender import ALL, PRODUCTS, Contender, Prepare

OURS = "gossamer"
SLICED = "gossamer_sell"
CHOSEN = "gossamer_prepared"
GOSSAMER = ("gossamer", "gossamer-generic-cpu", "llvmlite")
MKL = {"MKL_THREADING_LAYER": "intel"}
NUMBA = {"NUMBA_THREADING_LAYER": "omp"}
CONTENDERS = {
    OURS: Contender("gossamer", "prepare_bound", packages=GOSSAMER),
    "gossamer_op": Contender("gossamer", "prepare_operator", ops=ALL[:4], usual=()),
    SLICED: Contender("gossamer", "prepare_sliced", ops=("spmv",), packages=GOSSAMER),
    CHOSEN: Contender("gossamer", "prepare_chosen", ops=PRODUCTS, packages=GOSSAMER),
    "scipy": Contender(
        "scipy", ops=(*PRODUCTS, "attention"), packages=("numpy", "scipy"), threaded=False
    ),
    "mkl": Contender("mkl", ops=PRODUCTS, packages=("mkl", "intel-openmp"), environment=MKL),
    "mkl_plain": Contender(
        "mkl",
        "prepare_plain",
        ops=(*PRODUCTS, "attention"),
        usual=("attention",),
        environment={"MKL_THREADING_LAYER": "gnu", **NUMBA},
    ),
    "mkl_bsr": Contender("mkl", "prepare_blocks", ops=("bsr_spmm",), environment=MKL),
    "numba": Contender("numba", packages=("numba",), environment=NUMBA),
    "numba_fused": Contender("numba", "prepare_fused", ops=("attention",), environment=NUMBA),
    "torch": Contender("torch", packages=("torch",)),
    "taco_like": Contender("taco_like", ops=(*PRODUCTS, "sddmm"), usual=()),
    "taco_fast": Contender(
        "taco_like",
        "prepare_fast",
        ops=(*PRODUCTS, "sddmm"),
        usual=("sddmm",),
    ),
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
