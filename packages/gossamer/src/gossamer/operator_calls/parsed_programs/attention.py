"""The module of the script of `attention`; `python -m tools.generate parsed_programs` writes this file."""

from gossamer_ir.nodes import (
    Binary,
    Call,
    Compare,
    CompressedVaried,
    Const,
    DenseFixed,
    Function,
    Iteration,
    Load,
    Module,
    OverAxis,
    Param,
    Select,
    SparseBuffer,
    Store,
    Var,
)

PARSED = Module(
    "coordinate",
    (
        Function(
            "attention",
            (
                Param("q", "handle"),
                Param("k", "handle"),
                Param("v", "handle"),
                Param("scale", "handle"),
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
                    "scores",
                    (OverAxis("I"), OverAxis("J"), OverAxis("D")),
                    "SSR",
                    ("i", "j", "d"),
                    (
                        Store(
                            "P",
                            (Var("i", "int64"), Var("j", "int64")),
                            Binary(
                                "add",
                                Load("P", (Var("i", "int64"), Var("j", "int64")), "float32"),
                                Binary(
                                    "mul",
                                    Binary(
                                        "mul",
                                        Load(
                                            "Q",
                                            (Var("i", "int64"), Var("d", "int64")),
                                            "float32",
                                        ),
                                        Load("Scale", (Const("int64", "0"),), "float32"),
                                    ),
                                    Load("K", (Var("j", "int64"), Var("d", "int64")), "float32"),
                                ),
                            ),
                        ),
                    ),
                    init=(
                        Store("P", (Var("i", "int64"), Var("j", "int64")), Const("float32", "0.0")),
                    ),
                ),
                Iteration(
                    "most",
                    (OverAxis("I"), OverAxis("J")),
                    "SR",
                    ("i_1", "j_most"),
                    (
                        Store(
                            "Most",
                            (Var("i_1", "int64"),),
                            Binary(
                                "max",
                                Load("Most", (Var("i_1", "int64"),), "float32"),
                                Load("P", (Var("i_1", "int64"), Var("j_most", "int64")), "float32"),
                            ),
                        ),
                    ),
                    init=(Store("Most", (Var("i_1", "int64"),), Const("float32", "-inf")),),
                ),
                Iteration(
                    "powers",
                    (OverAxis("I"), OverAxis("J")),
                    "SS",
                    ("i_2", "j_power"),
                    (
                        Store(
                            "P",
                            (Var("i_2", "int64"), Var("j_power", "int64")),
                            Call(
                                "exp",
                                (
                                    Binary(
                                        "sub",
                                        Load(
                                            "P",
                                            (Var("i_2", "int64"), Var("j_power", "int64")),
                                            "float32",
                                        ),
                                        Load("Most", (Var("i_2", "int64"),), "float32"),
                                    ),
                                ),
                                "float32",
                            ),
                        ),
                    ),
                ),
                Iteration(
                    "total",
                    (OverAxis("I"), OverAxis("J")),
                    "SR",
                    ("i_3", "j_total"),
                    (
                        Store(
                            "Total",
                            (Var("i_3", "int64"),),
                            Binary(
                                "add",
                                Load("Total", (Var("i_3", "int64"),), "float32"),
                                Load(
                                    "P",
                                    (Var("i_3", "int64"), Var("j_total", "int64")),
                                    "float32",
                                ),
                            ),
                        ),
                    ),
                    init=(Store("Total", (Var("i_3", "int64"),), Const("float32", "0.0")),),
                ),
                Iteration(
                    "values",
                    (OverAxis("I"), OverAxis("J"), OverAxis("D")),
                    "SRS",
                    ("i_4", "j_value", "d_value"),
                    (
                        Store(
                            "Out",
                            (Var("i_4", "int64"), Var("d_value", "int64")),
                            Binary(
                                "add",
                                Load(
                                    "Out",
                                    (Var("i_4", "int64"), Var("d_value", "int64")),
                                    "float32",
                                ),
                                Binary(
                                    "mul",
                                    Load(
                                        "P",
                                        (Var("i_4", "int64"), Var("j_value", "int64")),
                                        "float32",
                                    ),
                                    Load(
                                        "V",
                                        (Var("j_value", "int64"), Var("d_value", "int64")),
                                        "float32",
                                    ),
                                ),
                            ),
                        ),
                    ),
                    init=(
                        Store(
                            "Out",
                            (Var("i_4", "int64"), Var("d_value", "int64")),
                            Const("float32", "0.0"),
                        ),
                    ),
                ),
                Iteration(
                    "quotients",
                    (OverAxis("I"), OverAxis("D")),
                    "SS",
                    ("i_5", "d_quotient"),
                    (
                        Store(
                            "Out",
                            (Var("i_5", "int64"), Var("d_quotient", "int64")),
                            Binary(
                                "div",
                                Load(
                                    "Out",
                                    (Var("i_5", "int64"), Var("d_quotient", "int64")),
                                    "float32",
                                ),
                                Select(
                                    Compare(
                                        "eq",
                                        Load("Total", (Var("i_5", "int64"),), "float32"),
                                        Const("float32", "0.0"),
                                    ),
                                    Const("float32", "1.0"),
                                    Load("Total", (Var("i_5", "int64"),), "float32"),
                                ),
                            ),
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
                DenseFixed("D", Var("feat_size", "int64")),
                DenseFixed("One", Const("int64", "1")),
            ),
            buffers=(
                SparseBuffer("Q", ("I", "D"), "float32", handle="q"),
                SparseBuffer("K", ("J_detach", "D"), "float32", handle="k"),
                SparseBuffer("V", ("J_detach", "D"), "float32", handle="v"),
                SparseBuffer("Scale", ("One",), "float32", handle="scale"),
                SparseBuffer("Out", ("I", "D"), "float32", handle="out"),
                SparseBuffer("P", ("I", "J"), "float32"),
                SparseBuffer("Most", ("I",), "float32"),
                SparseBuffer("Total", ("I",), "float32"),
            ),
            annotations=(("global_symbol", "attention"), ("tir.noalias", True)),
        ),
    ),
    "attention",
)
