"""Flat programs of one tile that a warpgroup multiplies, with B in shared memory."""

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module

TILE = """
@T.prim_func
def f(a: T.handle, e: T.handle, b: T.handle, c: T.handle) -> None:
    T.stage("flat")
    A = T.match_buffer(a, (ROWS, DEPTH // 4, 2), "LEFT")
    E = T.match_buffer(e, (ROWS, DEPTH // 4, 2), "uint8")
    B = T.match_buffer(b, (SHAPE), "LEFT")
    C = T.match_buffer(c, (ROWS, COLUMNS), "SUM")
    for block in T.thread_binding(1, thread="blockIdx.x"):
        S = T.alloc_buffer((ROWS, COLUMNS), "SUM", scope="fragment")
        X = T.alloc_buffer((ROWS, DEPTH // 4, 2), "LEFT", scope="fragment")
        M = T.alloc_buffer((ROWS, DEPTH // 4, 2), "uint8", scope="fragment")
        Y = T.alloc_buffer((SHAPE), "LEFT", scope="shared")
        for t in T.thread_binding(THREADS, thread="threadIdx.x"):
            for r in T.serial(DEPTH * COLUMNS // THREADS):
                Y[(r * THREADS + t) // WIDTH, (r * THREADS + t) % WIDTH] = B[(r * THREADS + t) // WIDTH, (r * THREADS + t) % WIDTH]
        for i, j in T.grid(ROWS, COLUMNS):
            S[i, j] = C[i, j]
        for i_1, q_1, s_1 in T.grid(ROWS, DEPTH // 4, 2):
            X[i_1, q_1, s_1] = A[i_1, q_1, s_1]
        for i_2, q_2, s_2 in T.grid(ROWS, DEPTH // 4, 2):
            M[i_2, q_2, s_2] = E[i_2, q_2, s_2]
        for i_3, q_3, s_3, j_2 in T.grid(ROWS, DEPTH // 4, 2, COLUMNS):
            S[i_3, j_2] = S[i_3, j_2] + T.SUM(X[i_3, q_3, s_3]) * T.SUM(Y[ELEMENT])
        for i_4, j_3 in T.grid(ROWS, COLUMNS):
            C[i_4, j_3] = S[i_4, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)


def warpgroup_text(
    dtype, sums, *, rows=64, columns=16, depth=64, by_k=False, threads=128, a_is_shared=False
):
    """The script of a tile; `by_k` if the columns of B are contiguous."""
    row = "4 * q_3 + T.int64(M[i_3, q_3, s_3]) % 4"
    shape = (columns, depth) if by_k else (depth, columns)
    texts = {
        "ROWS": str(rows),
        "DEPTH // 4": str(depth // 4),
        "DEPTH": str(depth),
        "THREADS": str(threads),
        "COLUMNS": str(columns),
        "SHAPE": ", ".join(map(str, shape)),
        "WIDTH": str(shape[1]),
        "ELEMENT": f"j_2, {row}" if by_k else f"{row}, j_2",
        "LEFT": dtype,
        "SUM": sums,
    }
    text = in_shared_memory(TILE) if a_is_shared else TILE
    for name, value in texts.items():
        text = text.replace(name, value)
    return text


def in_shared_memory(text):
    """The script with A in shared memory."""
    allocated = 'X = T.alloc_buffer((ROWS, DEPTH // 4, 2), "LEFT", scope="fragment")'
    filled = """        for i_1, q_1, s_1 in T.grid(ROWS, DEPTH // 4, 2):
            X[i_1, q_1, s_1] = A[i_1, q_1, s_1]
"""
    copied = """        for t_1 in T.thread_binding(THREADS, thread="threadIdx.x"):
            for r in T.serial(ROWS * (DEPTH // 2) // THREADS):
                X[(r * THREADS + t_1) // (DEPTH // 2), (r * THREADS + t_1) % (DEPTH // 2)] = A[(r * THREADS + t_1) // (DEPTH // 2), (r * THREADS + t_1) % (DEPTH // 2) // 2, (r * THREADS + t_1) % 2]
"""  # noqa: E501  (scripts have no line breaks inside an expression)
    assert allocated in text
    assert filled in text
    text = text.replace(allocated, 'X = T.alloc_buffer((ROWS, DEPTH // 2), "LEFT", scope="shared")')
    return text.replace(filled, copied).replace("X[i_3, q_3, s_3]", "X[i_3, 2 * q_3 + s_3]")


PIPELINED = """
@T.prim_func
def f(a: T.handle, e: T.handle, b: T.handle, c: T.handle, n: T.int64) -> None:
    T.stage("flat")
    A = T.match_buffer(a, (64, n * 8, 2), "float16")
    E = T.match_buffer(e, (64, n * 8, 2), "uint8")
    B = T.match_buffer(b, (n * 32, 16), "float16")
    C = T.match_buffer(c, (64, 16), "float32")
    for block in T.thread_binding(1, thread="blockIdx.x"):
        S = T.alloc_buffer((64, 16), "float32", scope="fragment")
        for i, j in T.grid(64, 16):
            S[i, j] = C[i, j]
        for k in T.serial(n, annotations={"pipeline": STAGES}):
            X = T.alloc_buffer((64, 16), "float16", scope="shared")
            Y = T.alloc_buffer((32, 16), "float16", scope="shared")
            for t in T.thread_binding(128, thread="threadIdx.x"):
                for v in T.serial(8):
                    X[t // 2, t % 2 * 8 + v] = A[t // 2, k * 8 + t % 2 * 4 + v // 2, v % 2]
                for r in T.serial(4):
                    Y[r * 8 + t // 16, t % 16] = B[k * 32 + r * 8 + t // 16, t % 16]
            M = T.alloc_buffer((64, 8, 2), "uint8", scope="fragment")
            for i_2, q_2, s_2 in T.grid(64, 8, 2):
                M[i_2, q_2, s_2] = E[i_2, k * 8 + q_2, s_2]
            for i_3, q_3, s_3, j_2 in T.grid(64, 8, 2, 16):
                S[i_3, j_2] = S[i_3, j_2] + T.float32(X[i_3, 2 * q_3 + s_3]) * T.float32(Y[4 * q_3 + T.int64(M[i_3, q_3, s_3]) % 4, j_2])
        for i_4, j_3 in T.grid(64, 16):
            C[i_4, j_3] = S[i_4, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)
"""A loop along the depth whose copies run ahead, with A and B in shared memory."""


def compiled(text, target="cuda-mma-sp:arch=sm_90a,driver=interpreter"):
    """The artifact of a script."""
    return CudaBackend().compile(parse_module(text), Target.parse(target))


def ptx_of(artifact):
    return DeviceCode.decode(artifact.code).ptx
