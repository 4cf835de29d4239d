"""The picture of the stages of a program."""

from __future__ import annotations

from gossamer_ir import Module, parse_module
from gossamer_lower import lower_buffers, lower_iterations, lower_to_flat
from gossamer_testkit.show import body_text
from tools.drawing.svg import MARGIN, arrow, drawing, text

PROGRAM = """
@T.prim_func
def csrmv(a: T.handle, x: T.handle, y: T.handle, indptr: T.handle, indices: T.handle,
          m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (N,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "csrmv") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
"""
STAGES = ("coordinate", "position", "loop", "flat")
LINE, STEP = 18, 46
NOTES = {
    "coordinate": "axes and sparse iterations; an index is a coordinate",
    "position": "loops and blocks; an index is a position in a fiber",
    "loop": "buffers are plain arrays; schedules apply here and above",
    "flat": "loops and loads only: what a backend receives",
    "native": "LLVM IR, then machine code for this CPU; cached on disk",
}
PASSES = (
    "lower_iterations",
    "lower_buffers",
    "lower_blocks and the passes after it",
    "the backend",
)
NATIVE = "kernel(a=a, x=x, y=y, indptr=indptr, indices=indices)"


def stages() -> dict[str, str]:
    """Return the body of one program at each stage, as the compiler prints it."""
    program = parse_module(PROGRAM)
    position = lower_iterations(program)
    loop = lower_buffers(position)
    modules: tuple[Module, ...] = (program, position, loop, lower_to_flat(loop))
    bodies: dict[str, str] = {module.stage: body_text(module) for module in modules}
    return {**bodies, "native": NATIVE}


def picture_of_stages() -> str:
    """Return a box for each stage, and the pass that leads to the next one on each arrow."""
    width = 960
    parts: list[str] = []
    y: float = MARGIN
    for number, (stage, body) in enumerate(stages().items()):
        if number:
            parts += arrow(MARGIN + 40, y - STEP + 6, y - 8, PASSES[number - 1])
        lines = body.splitlines()
        height = 34 + LINE * len(lines)
        parts.append(
            f'<rect class="box" x="{MARGIN}" y="{y}" width="{width - 2 * MARGIN}" height="{height}" rx="6"/>'
        )
        parts.append(text(MARGIN + 12, y + 20, stage, "title"))
        parts.append(text(width - MARGIN - 12, y + 20, NOTES[stage], "note", "end"))
        parts += [text(MARGIN + 12, y + 42 + LINE * row, line) for row, line in enumerate(lines)]
        y += height + STEP
    return drawing(width, y - STEP + MARGIN, "The stages of a program", parts)
