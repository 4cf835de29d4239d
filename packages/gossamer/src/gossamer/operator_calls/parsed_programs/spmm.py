"""The module of the script of `spmm`; `python -m tools.generate parsed_programs` writes this file."""

from gossamer_ir.nodes import (
    Binary,
    CompressedVaried,
    Const,
    DenseFixed,
    Function,
    Iteration,
    Load,
    Module,
    OverAxis,
    Param,
    SparseBuffer,
    Store,
    Var,
)

PARSED = Module(
    "coordinate",
    (
        Function(
            "csrmm",
            (
                Param("a", "handle"),
                Param("b", "handle"),
                Param("c", "handle"),
                Param("indptr", "handle"),
                Param("indices", "handle"),
                Param("m", "int64"),
                Param("n", "int64"),
                Param("feat_size", "int64"),
                Param("nnz", "int64"),
            ),
            (
                Iteration(
                    "csrmm",
                    (OverAxis("I"), OverAxis("J"), OverAxis("K")),
                    "SRS",
                    ("i", "j", "k"),
                    (
                        Store(
                            "C",
                            (Var("i", "int64"), Var("k", "int64")),
                            Binary(
                                "add",
                                Load("C", (Var("i", "int64"), Var("k", "int64")), "float32"),
                                Binary(
                                    "mul",
                                    Load("A", (Var("i", "int64"), Var("j", "int64")), "float32"),
                                    Load("B", (Var("j", "int64"), Var("k", "int64")), "float32"),
                                ),
                            ),
                        ),
                    ),
                    init=(
                        Store("C", (Var("i", "int64"), Var("k", "int64")), Const("float32", "0.0")),
                    ),
                ),
            ),
            axes=(
                DenseFixed("I", Var("m", "int64")),
                CompressedVaried(
                    "J",
                    "I",
                    Var("n", "int64"),
                    Var("nnz", "int64"),
                    "indptr",
                    "indices",
                    sorted=False,
                    unique=False,
                ),
                DenseFixed("J_detach", Var("n", "int64")),
                DenseFixed("K", Var("feat_size", "int64")),
            ),
            buffers=(
                SparseBuffer("A", ("I", "J"), "float32", handle="a"),
                SparseBuffer("B", ("J_detach", "K"), "float32", handle="b"),
                SparseBuffer("C", ("I", "K"), "float32", handle="c"),
            ),
            annotations=(("global_symbol", "csrmm"), ("tir.noalias", True)),
        ),
    ),
    "csrmm",
)
