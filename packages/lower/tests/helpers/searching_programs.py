"""Programs that search coordinates, at each stage."""

from __future__ import annotations

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_lower import lower_buffers, lower_iterations, lower_to_flat

HEAD = """
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle, p: T.handle, q: T.handle, r: T.handle, s: T.handle,
      m: T.int64, n: T.int64, nnz_a: T.int64, nnz_b: T.int64):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz_a), (p, q))
    L = T.sp.compressed_varied(I, (n, nnz_b), (r, s))
    D = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
"""
PROGRAMS = {
    "fused": """
    B = T.sp.match_buffer(b, (I, D), "float32")
    C = T.sp.match_buffer(c, (I, J), "float32")
    with T.sp.iteration([T.sp.fuse(I, J)], "SS", "it") as [i, j]:
        C[i, j] = A[i, j] * B[i, j]
""",
    "dense": """
    B = T.sp.match_buffer(b, (I, D), "float32")
    C = T.sp.match_buffer(c, (I, D), "float32")
    with T.sp.iteration([I, D], "SS", "it") as [i, k]:
        C[i, k] = A[i, k] * B[i, k]
""",
    "of another tree": """
    B = T.sp.match_buffer(b, (I, L), "float32")
    C = T.sp.match_buffer(c, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "it") as [i, j]:
        C[i, j] = A[i, j] * B[i, j]
""",
}


def at_stage(name, stage):
    position = lower_iterations(parse_module(HEAD + PROGRAMS[name]))
    return position if stage == "position" else lower_buffers(position)


def to_flat(module):
    return lower_to_flat(module if module.stage == "loop" else lower_buffers(module))


def run_on(module, arguments):
    names = {param.name for param in module.functions[0].params}
    run(verify(module), {name: arguments[name] for name in names})
