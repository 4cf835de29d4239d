"""The module of the check of int64 arrays; `python -m tools.generate parsed_programs` writes this file."""

from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Cast,
    Compare,
    Const,
    For,
    Function,
    Guard,
    Load,
    Module,
    Param,
    Select,
    Store,
    Var,
)

PARSED = Module(
    "loop",
    (
        Function(
            "check",
            (
                Param("x0", "handle"),
                Param("n0", "int64"),
                Param("x1", "handle"),
                Param("n1", "int64"),
                Param("low1", "int64"),
                Param("last1", "int64"),
            ),
            (
                For(
                    "c",
                    Const("int64", "0"),
                    Binary(
                        "floordiv",
                        Binary("add", Var("n0", "int64"), Const("int64", "2047")),
                        Const("int64", "2048"),
                    ),
                    (
                        Allocate(Buffer("steps", (Const("int64", "1"),), "int64", scope="local")),
                        Store("steps", (Const("int64", "0"),), Const("int64", "0")),
                        For(
                            "t",
                            Const("int64", "0"),
                            Binary(
                                "min",
                                Const("int64", "128"),
                                Binary(
                                    "floordiv",
                                    Binary(
                                        "sub",
                                        Binary("sub", Var("n0", "int64"), Const("int64", "1")),
                                        Binary("mul", Var("c", "int64"), Const("int64", "2048")),
                                    ),
                                    Const("int64", "16"),
                                ),
                            ),
                            (
                                For(
                                    "l",
                                    Const("int64", "0"),
                                    Const("int64", "16"),
                                    (
                                        Store(
                                            "steps",
                                            (Const("int64", "0"),),
                                            Binary(
                                                "add",
                                                Load("steps", (Const("int64", "0"),), "int64"),
                                                Select(
                                                    Compare(
                                                        "lt",
                                                        Load(
                                                            "X0",
                                                            (
                                                                Binary(
                                                                    "add",
                                                                    Binary(
                                                                        "add",
                                                                        Binary(
                                                                            "add",
                                                                            Binary(
                                                                                "mul",
                                                                                Var("c", "int64"),
                                                                                Const(
                                                                                    "int64",
                                                                                    "2048",
                                                                                ),
                                                                            ),
                                                                            Binary(
                                                                                "mul",
                                                                                Var("t", "int64"),
                                                                                Const(
                                                                                    "int64",
                                                                                    "16",
                                                                                ),
                                                                            ),
                                                                        ),
                                                                        Var("l", "int64"),
                                                                    ),
                                                                    Const("int64", "1"),
                                                                ),
                                                            ),
                                                            "int64",
                                                        ),
                                                        Load(
                                                            "X0",
                                                            (
                                                                Binary(
                                                                    "add",
                                                                    Binary(
                                                                        "add",
                                                                        Binary(
                                                                            "mul",
                                                                            Var("c", "int64"),
                                                                            Const("int64", "2048"),
                                                                        ),
                                                                        Binary(
                                                                            "mul",
                                                                            Var("t", "int64"),
                                                                            Const("int64", "16"),
                                                                        ),
                                                                    ),
                                                                    Var("l", "int64"),
                                                                ),
                                                            ),
                                                            "int64",
                                                        ),
                                                    ),
                                                    Const("int64", "1"),
                                                    Const("int64", "0"),
                                                ),
                                            ),
                                        ),
                                    ),
                                    kind="vectorized",
                                ),
                            ),
                        ),
                        For(
                            "t_1",
                            Binary(
                                "min",
                                Const("int64", "128"),
                                Binary(
                                    "floordiv",
                                    Binary(
                                        "sub",
                                        Binary("sub", Var("n0", "int64"), Const("int64", "1")),
                                        Binary("mul", Var("c", "int64"), Const("int64", "2048")),
                                    ),
                                    Const("int64", "16"),
                                ),
                            ),
                            Const("int64", "1"),
                            (
                                For(
                                    "l_1",
                                    Const("int64", "0"),
                                    Binary(
                                        "sub",
                                        Binary(
                                            "min",
                                            Const("int64", "2048"),
                                            Binary(
                                                "sub",
                                                Binary(
                                                    "sub",
                                                    Var("n0", "int64"),
                                                    Const("int64", "1"),
                                                ),
                                                Binary(
                                                    "mul",
                                                    Var("c", "int64"),
                                                    Const("int64", "2048"),
                                                ),
                                            ),
                                        ),
                                        Binary("mul", Var("t_1", "int64"), Const("int64", "16")),
                                    ),
                                    (
                                        Store(
                                            "steps",
                                            (Const("int64", "0"),),
                                            Binary(
                                                "add",
                                                Load("steps", (Const("int64", "0"),), "int64"),
                                                Select(
                                                    Compare(
                                                        "lt",
                                                        Load(
                                                            "X0",
                                                            (
                                                                Binary(
                                                                    "add",
                                                                    Binary(
                                                                        "add",
                                                                        Binary(
                                                                            "add",
                                                                            Binary(
                                                                                "mul",
                                                                                Var("c", "int64"),
                                                                                Const(
                                                                                    "int64",
                                                                                    "2048",
                                                                                ),
                                                                            ),
                                                                            Binary(
                                                                                "mul",
                                                                                Var("t_1", "int64"),
                                                                                Const(
                                                                                    "int64",
                                                                                    "16",
                                                                                ),
                                                                            ),
                                                                        ),
                                                                        Var("l_1", "int64"),
                                                                    ),
                                                                    Const("int64", "1"),
                                                                ),
                                                            ),
                                                            "int64",
                                                        ),
                                                        Load(
                                                            "X0",
                                                            (
                                                                Binary(
                                                                    "add",
                                                                    Binary(
                                                                        "add",
                                                                        Binary(
                                                                            "mul",
                                                                            Var("c", "int64"),
                                                                            Const("int64", "2048"),
                                                                        ),
                                                                        Binary(
                                                                            "mul",
                                                                            Var("t_1", "int64"),
                                                                            Const("int64", "16"),
                                                                        ),
                                                                    ),
                                                                    Var("l_1", "int64"),
                                                                ),
                                                            ),
                                                            "int64",
                                                        ),
                                                    ),
                                                    Const("int64", "1"),
                                                    Const("int64", "0"),
                                                ),
                                            ),
                                        ),
                                    ),
                                ),
                            ),
                        ),
                        Guard(
                            Compare(
                                "eq",
                                Load("steps", (Const("int64", "0"),), "int64"),
                                Const("int64", "0"),
                            ),
                            "X0",
                        ),
                    ),
                    kind="parallel",
                    weight=Binary("mul", Var("c", "int64"), Const("int64", "2048")),
                    grain=Const("int64", "524288"),
                ),
                For(
                    "c_1",
                    Const("int64", "0"),
                    Binary(
                        "floordiv",
                        Binary("add", Var("n1", "int64"), Const("int64", "2047")),
                        Const("int64", "2048"),
                    ),
                    (
                        Allocate(Buffer("most", (Const("int64", "1"),), "uint64", scope="local")),
                        Store("most", (Const("int64", "0"),), Const("uint64", "0")),
                        For(
                            "t_2",
                            Const("int64", "0"),
                            Binary(
                                "min",
                                Const("int64", "128"),
                                Binary(
                                    "floordiv",
                                    Binary(
                                        "sub",
                                        Var("n1", "int64"),
                                        Binary("mul", Var("c_1", "int64"), Const("int64", "2048")),
                                    ),
                                    Const("int64", "16"),
                                ),
                            ),
                            (
                                For(
                                    "l_2",
                                    Const("int64", "0"),
                                    Const("int64", "16"),
                                    (
                                        Store(
                                            "most",
                                            (Const("int64", "0"),),
                                            Binary(
                                                "max",
                                                Load("most", (Const("int64", "0"),), "uint64"),
                                                Binary(
                                                    "sub",
                                                    Cast(
                                                        "uint64",
                                                        Load(
                                                            "X1",
                                                            (
                                                                Binary(
                                                                    "add",
                                                                    Binary(
                                                                        "add",
                                                                        Binary(
                                                                            "mul",
                                                                            Var("c_1", "int64"),
                                                                            Const("int64", "2048"),
                                                                        ),
                                                                        Binary(
                                                                            "mul",
                                                                            Var("t_2", "int64"),
                                                                            Const("int64", "16"),
                                                                        ),
                                                                    ),
                                                                    Var("l_2", "int64"),
                                                                ),
                                                            ),
                                                            "int64",
                                                        ),
                                                    ),
                                                    Cast("uint64", Var("low1", "int64")),
                                                ),
                                            ),
                                        ),
                                    ),
                                    kind="vectorized",
                                ),
                            ),
                        ),
                        For(
                            "t_3",
                            Binary(
                                "min",
                                Const("int64", "128"),
                                Binary(
                                    "floordiv",
                                    Binary(
                                        "sub",
                                        Var("n1", "int64"),
                                        Binary("mul", Var("c_1", "int64"), Const("int64", "2048")),
                                    ),
                                    Const("int64", "16"),
                                ),
                            ),
                            Const("int64", "1"),
                            (
                                For(
                                    "l_3",
                                    Const("int64", "0"),
                                    Binary(
                                        "sub",
                                        Binary(
                                            "min",
                                            Const("int64", "2048"),
                                            Binary(
                                                "sub",
                                                Var("n1", "int64"),
                                                Binary(
                                                    "mul",
                                                    Var("c_1", "int64"),
                                                    Const("int64", "2048"),
                                                ),
                                            ),
                                        ),
                                        Binary("mul", Var("t_3", "int64"), Const("int64", "16")),
                                    ),
                                    (
                                        Store(
                                            "most",
                                            (Const("int64", "0"),),
                                            Binary(
                                                "max",
                                                Load("most", (Const("int64", "0"),), "uint64"),
                                                Binary(
                                                    "sub",
                                                    Cast(
                                                        "uint64",
                                                        Load(
                                                            "X1",
                                                            (
                                                                Binary(
                                                                    "add",
                                                                    Binary(
                                                                        "add",
                                                                        Binary(
                                                                            "mul",
                                                                            Var("c_1", "int64"),
                                                                            Const("int64", "2048"),
                                                                        ),
                                                                        Binary(
                                                                            "mul",
                                                                            Var("t_3", "int64"),
                                                                            Const("int64", "16"),
                                                                        ),
                                                                    ),
                                                                    Var("l_3", "int64"),
                                                                ),
                                                            ),
                                                            "int64",
                                                        ),
                                                    ),
                                                    Cast("uint64", Var("low1", "int64")),
                                                ),
                                            ),
                                        ),
                                    ),
                                ),
                            ),
                        ),
                        Guard(
                            Compare(
                                "le",
                                Load("most", (Const("int64", "0"),), "uint64"),
                                Binary(
                                    "sub",
                                    Cast("uint64", Var("last1", "int64")),
                                    Cast("uint64", Var("low1", "int64")),
                                ),
                            ),
                            "X1",
                        ),
                    ),
                    kind="parallel",
                    weight=Binary("mul", Var("c_1", "int64"), Const("int64", "2048")),
                    grain=Const("int64", "524288"),
                ),
            ),
            buffers=(
                Buffer("X0", (Var("n0", "int64"),), "int64", handle="x0"),
                Buffer("X1", (Var("n1", "int64"),), "int64", handle="x1"),
            ),
        ),
    ),
    "check",
)
