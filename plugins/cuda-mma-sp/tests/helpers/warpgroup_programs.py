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


def warpgroup_text(dtype, sums, *, rows=64, columns=16, depth=64, by_k=False, threads=128):
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
    text = TILE
    for name, value in texts.items():
        text = text.replace(name, value)
    return text


def compiled(text, target="cuda-mma-sp:arch=sm_90a,driver=interpreter"):
    """The artifact of a script."""
    return CudaBackend().compile(parse_module(text), Target.parse(target))


def ptx_of(artifact):
    return DeviceCode.decode(artifact.code).ptx
