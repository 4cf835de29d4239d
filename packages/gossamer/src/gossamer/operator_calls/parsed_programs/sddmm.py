"""The module of the script of `sddmm`; `python -m tools.generate parsed_programs` writes this file."""

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
            "sddmm",
            (
                Param("x", "handle"),
                Param("y", "handle"),
                Param("out", "handle"),
                Param("indptr", "handle"),
                Param("indices", "handle"),
                Param("m", "int64"),
                Param("n", "int64"),
                Param("feat_size", "int64"),
                Param("nnz", "int64"),
            ),
            (
                Iteration(
                    "sddmm",
                    (OverAxis("I"), OverAxis("J"), OverAxis("K")),
                    "SSR",
                    ("i", "j", "k"),
                    (
                        Store(
                            "Out",
                            (Var("i", "int64"), Var("j", "int64")),
                            Binary(
                                "add",
                                Load("Out", (Var("i", "int64"), Var("j", "int64")), "float32"),
                                Binary(
                                    "mul",
                                    Load("X", (Var("i", "int64"), Var("k", "int64")), "float32"),
                                    Load("Y", (Var("j", "int64"), Var("k", "int64")), "float32"),
                                ),
                            ),
                        ),
                    ),
                    init=(
                        Store(
                            "Out",
                            (Var("i", "int64"), Var("j", "int64")),
                            Const("float32", "0.0"),
                        ),
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
                SparseBuffer("X", ("I", "K"), "float32", handle="x"),
                SparseBuffer("Y", ("J_detach", "K"), "float32", handle="y"),
                SparseBuffer("Out", ("I", "J"), "float32", handle="out"),
            ),
            annotations=(("global_symbol", "sddmm"), ("tir.noalias", True)),
        ),
    ),
    "sddmm",
)
