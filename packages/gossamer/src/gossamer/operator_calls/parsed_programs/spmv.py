"""The module of the script of `spmv`; `python -m tools.generate parsed_programs` writes this file."""

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
            "csrmv",
            (
                Param("a", "handle"),
                Param("x", "handle"),
                Param("y", "handle"),
                Param("indptr", "handle"),
                Param("indices", "handle"),
                Param("m", "int64"),
                Param("n", "int64"),
                Param("nnz", "int64"),
            ),
            (
                Iteration(
                    "csrmv",
                    (OverAxis("I"), OverAxis("J")),
                    "SR",
                    ("i", "j"),
                    (
                        Store(
                            "Y",
                            (Var("i", "int64"),),
                            Binary(
                                "add",
                                Load("Y", (Var("i", "int64"),), "float32"),
                                Binary(
                                    "mul",
                                    Load("A", (Var("i", "int64"), Var("j", "int64")), "float32"),
                                    Load("X", (Var("j", "int64"),), "float32"),
                                ),
                            ),
                        ),
                    ),
                    init=(Store("Y", (Var("i", "int64"),), Const("float32", "0.0")),),
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
            ),
            buffers=(
                SparseBuffer("A", ("I", "J"), "float32", handle="a"),
                SparseBuffer("X", ("J_detach",), "float32", handle="x"),
                SparseBuffer("Y", ("I",), "float32", handle="y"),
            ),
            annotations=(("global_symbol", "csrmv"), ("tir.noalias", True)),
        ),
    ),
    "csrmv",
)
