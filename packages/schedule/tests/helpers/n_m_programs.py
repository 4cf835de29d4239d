"""Products of N:M matrices and dense ones."""

from gossamer_machine.intrinsics.float8_operands import float8_text

PROGRAM = """
@T.prim_func
def f(a: T.handle, e: T.handle, b: T.handle, c: T.handle, m: T.int64, g: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    G = T.sp.dense_fixed(g, parent=I)
    J = T.sp.compressed_fixed(G, (4, 2), e, "uint8", padded=False)
    N = T.sp.dense_fixed(g * 4)
    K = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, G, J), "float16")
    B = T.sp.match_buffer(b, (N, K), "float16")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, G, J, K], "SRRS", "f") as [i, q, s, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + T.float32(A[i, q, s]) * T.float32(B[q * 4 + s, k])
"""

PAIRS = (
    PROGRAM.replace("float16", "int8")
    .replace("float32", "int32")
    .replace("0.0", "0")
    .replace("g * 4)", "g * 8)\n    P = T.sp.dense_fixed(2, parent=J)")
    .replace("(I, G, J)", "(I, G, J, P)")
    .replace('[I, G, J, K], "SRRS"', '[I, G, J, P, K], "SRRRS"')
    .replace("[i, q, s, k]", "[i, q, s, p, k]")
    .replace("A[i, q, s]", "A[i, q, s, p]")
    .replace("B[q * 4 + s, k]", "B[(q * 4 + s) * 2 + p, k]")
)  # fmt: skip
"""A product of a 4:8 matrix in pairs."""
INT4 = PAIRS.replace(
    "    with T.sp.iteration",
    "    T.assume(in_range(A, -8, 8))\n    T.assume(in_range(B, -8, 8))\n    with T.sp.iteration",
)
"""That of int4."""
TF32 = (
    PROGRAM.replace('"float16"', '"float32"')
    .replace("T.float32", "T.tf32")
    .replace("(4, 2)", "(2, 1)")
    .replace("g * 4", "g * 2")
    .replace("q * 4", "q * 2")
)
"""A product of a 1:2 matrix in TF32."""


def float8_program(left, right):
    """A product of bytes that encode floats of these dtypes."""
    return (
        PROGRAM.replace('"float16"', '"uint8"')
        .replace("T.float32(A[i, q, s])", float8_text("A[i, q, s]", left))
        .replace("T.float32(B[q * 4 + s, k])", float8_text("B[q * 4 + s, k]", right))
    )


VARIANTS = {
    "as written": PROGRAM,
    "without init": PROGRAM.replace("        with T.init():\n            C[i, k] = 0.0\n", ""),
    "B transposed": PROGRAM.replace("(N, K)", "(K, N)").replace("B[q * 4 + s, k]", "B[k, s + 4 * q]"),
    "C transposed": PROGRAM.replace("(I, K)", "(K, I)").replace("C[i, k]", "C[k, i]"),
    "int8": PROGRAM.replace("float16", "int8").replace("float32", "int32").replace("0.0", "0"),
}  # fmt: skip
"""Programs that are products of 2:4 matrices."""
LOOP = """
@T.prim_func
def f(a: T.handle, e: T.handle, b: T.handle, c: T.handle, m: T.int64, g: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A_data = T.match_buffer(a, (m, g, 2), "float16")
    B_data = T.match_buffer(b, (g * 4, n), "float16")
    C_data = T.match_buffer(c, (m, n), "float32")
    J_indices = T.match_buffer(e, (m, g, 2), "uint8")
    T.assume(in_range(J_indices, 0, 4))
    T.assume(sorted_segments(J_indices, unique=True))
    for i, q, s, k in T.grid(m, g, 2, n):
        with T.block("f"):
            vi, vq, vs, vk = T.axis.remap("SRRS", [i, q, s, k])
            with T.init():
                C_data[vi, vk] = 0.0
            C_data[vi, vk] = C_data[vi, vk] + T.float32(A_data[vi, vq, vs]) * T.float32(B_data[vq * 4 + T.int64(J_indices[vi, vq, vs]), vk])
"""  # noqa: E501  (scripts have no line breaks inside an expression)
"""`PROGRAM` at the loop stage."""
