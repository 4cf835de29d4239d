"""The module of the script of `matmul_24`; `python -m tools.generate parsed_programs` writes this file."""

from gossamer_ir.nodes import (
    Binary,
    CompressedFixed,
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
            "matmul_24",
            (
                Param("a", "handle"),
                Param("indices", "handle"),
                Param("b", "handle"),
                Param("c", "handle"),
                Param("m", "int64"),
                Param("groups", "int64"),
                Param("feat_size", "int64"),
            ),
            (
                Iteration(
                    "matmul_24",
                    (OverAxis("I"), OverAxis("G"), OverAxis("J"), OverAxis("K")),
                    "SRRS",
                    ("i", "g", "j", "k"),
                    (
                        Store(
                            "C",
                            (Var("i", "int64"), Var("k", "int64")),
                            Binary(
                                "add",
                                Load("C", (Var("i", "int64"), Var("k", "int64")), "float32"),
                                Binary(
                                    "mul",
                                    Load(
                                        "A",
                                        (Var("i", "int64"), Var("g", "int64"), Var("j", "int64")),
                                        "float32",
                                    ),
                                    Load(
                                        "B",
                                        (
                                            Binary(
                                                "add",
                                                Binary(
                                                    "mul",
                                                    Var("g", "int64"),
                                                    Const("int64", "4"),
                                                ),
                                                Var("j", "int64"),
                                            ),
                                            Var("k", "int64"),
                                        ),
                                        "float32",
                                    ),
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
                DenseFixed("G", Var("groups", "int64"), parent="I"),
                CompressedFixed(
                    "J",
                    "G",
                    Const("int64", "4"),
                    Const("int64", "2"),
                    "indices",
                    indices_dtype="uint8",
                    padded=False,
                ),
                DenseFixed("J_detach", Binary("mul", Var("groups", "int64"), Const("int64", "4"))),
                DenseFixed("K", Var("feat_size", "int64")),
            ),
            buffers=(
                SparseBuffer("A", ("I", "G", "J"), "float32", handle="a"),
                SparseBuffer("B", ("J_detach", "K"), "float32", handle="b"),
                SparseBuffer("C", ("I", "K"), "float32", handle="c"),
            ),
            annotations=(("global_symbol", "matmul_24"), ("tir.noalias", True)),
        ),
    ),
    "matmul_24",
)
