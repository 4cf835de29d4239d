"""`docs/pictures`: formats and stages, as SVG.

Each picture has its own background, in light and dark, so it is readable on any page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

from gossamer_ir import Module, parse_module
from gossamer_lower import lower_buffers, lower_iterations, lower_to_flat
from gossamer_testkit.show import body_text
from tools import ROOT

FOLDER = ROOT / "docs/pictures"
MATRIX = ((1, 2, 0, 0, 0, 0), (0, 3, 0, 0, 0, 0), (4, 0, 5, 6, 0, 7), (0, 0, 8, 0, 0, 0))
"""The matrix that all pictures of formats store; zeros are not stored."""
CELL, GAP, MARGIN = 30, 22, 24
LABEL = 74
"""The room for the name of an array, to the left of it."""
BLOCK = 2

STYLE = """\
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #1f2933 }
.title { font: bold 14px system-ui, sans-serif }
.note { font: 12px system-ui, sans-serif; fill: #52606d }
.back { fill: #ffffff; stroke: #cbd2d9 }
.cell { stroke: #7b8794; fill: none }
.pad { stroke: #7b8794; fill: #e4e7eb }
.box { stroke: #7b8794; fill: #f5f7fa }
.arrow { stroke: #52606d; stroke-width: 1.5; fill: none }
.head { fill: #52606d }
.row0 { stroke: #7b8794; fill: #b3d9f2 } .row1 { stroke: #7b8794; fill: #f7d6a8 }
.row2 { stroke: #7b8794; fill: #b9e4cf } .row3 { stroke: #7b8794; fill: #edc4da }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f4f8 }
  .note { fill: #bcccdc }
  .back { fill: #1b2027; stroke: #486581 }
  .pad { fill: #323f4b }
  .box { fill: #252d36 }
  .arrow { stroke: #bcccdc } .head { fill: #bcccdc }
  .row0 { fill: #1c5d87 } .row1 { fill: #8a5a13 } .row2 { fill: #1d6b4a } .row3 { fill: #8a2f63 }
}"""

Cell = tuple[str, str]
"""The text of a cell and its class."""
Line = tuple[str, Sequence[Cell]]
"""The name of an array, or nothing where it goes on, and its cells."""


def color(row: int) -> str:
    """Return the class of a stored element."""
    return f"row{row}"


def stored(row: Sequence[int]) -> list[int]:
    """Return the columns of the stored elements of a row.

    >>> stored((4, 0, 5, 6, 0, 7))
    [0, 2, 3, 5]
    """
    return [column for column, value in enumerate(row) if value]


def csr() -> list[Line]:
    """Offsets, columns and values."""
    offsets = [sum(len(stored(row)) for row in MATRIX[:end]) for end in range(len(MATRIX) + 1)]
    elements = [(number, column) for number, row in enumerate(MATRIX) for column in stored(row)]
    return [
        ("indptr", [(str(offset), "cell") for offset in offsets]),
        ("indices", [(str(column), color(row)) for row, column in elements]),
        ("data", [(str(MATRIX[row][column]), color(row)) for row, column in elements]),
    ]


def padded(
    rows: Iterable[int], width: int, text: Callable[[int, int], str], pad: str
) -> list[list[Cell]]:
    """For each row its stored elements, filled up to a width."""
    lines = []
    for row in rows:
        cells = [(text(row, column), color(row)) for column in stored(MATRIX[row])]
        lines.append([*cells, *[(pad, "pad")] * (width - len(cells))])
    return lines


def named(name: str, rows: Sequence[Sequence[Cell]]) -> list[Line]:
    """Return an array of several rows."""
    return [(name if number == 0 else "", cells) for number, cells in enumerate(rows)]


def ell_arrays(rows: Sequence[int], width: int) -> list[Line]:
    """Columns and values of rows of one width; a padded slot has the column after the last one."""
    columns = padded(rows, width, lambda _, column: str(column), str(len(MATRIX[0])))
    values = padded(rows, width, lambda row, column: str(MATRIX[row][column]), "0")
    return [*named("indices", columns), *named("data", values)]


def ell() -> list[Line]:
    """Return all rows as wide as the longest."""
    return ell_arrays(range(len(MATRIX)), max(len(stored(row)) for row in MATRIX))


def bsr() -> list[Line]:
    """Offsets and columns of blocks, and the blocks side by side."""
    offsets, columns, blocks = [0], [], []
    for top in range(0, len(MATRIX), BLOCK):
        for left in range(0, len(MATRIX[0]), BLOCK):
            block = [row[left : left + BLOCK] for row in MATRIX[top : top + BLOCK]]
            if any(map(any, block)):
                columns.append((str(left // BLOCK), "cell"))
                blocks.append(
                    [[value_cell(top + at, value) for value in row] for at, row in enumerate(block)]
                )
        offsets.append(len(columns))
    rows = [[cell for block in blocks for cell in block[at]] for at in range(BLOCK)]
    return [
        ("indptr", [(str(offset), "cell") for offset in offsets]),
        ("indices", columns),
        *named("data", rows),
    ]


def value_cell(row: int, value: int) -> Cell:
    """Return an element of a block; one that the matrix does not store is padding."""
    return (str(value), color(row) if value else "pad")


def hyb() -> list[Line]:
    """Buckets of rows with up to 1, 2 and 4 elements, each an ELL matrix with its row numbers."""
    lines: list[Line] = []
    low = 0
    for width in (1, 2, 4):
        rows = [row for row, cells in enumerate(MATRIX) if low < len(stored(cells)) <= width]
        lines.append((f"rows ({width})", [(str(row), color(row)) for row in rows]))
        lines += ell_arrays(rows, width)
        low = width
    return lines


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    """Return a text at a place."""
    attribute = f' class="{kind}"' if kind else ""
    place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
    return f'<text {place}{attribute} xml:space="preserve">{escape(content)}</text>'


def box(x: float, y: float, cell: Cell, width: float = CELL) -> str:
    """Return a cell with its text in the middle."""
    content, kind = cell
    rectangle = f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{CELL}"/>'
    return rectangle + text(x + width / 2, y + CELL / 2 + 5, content, anchor="middle")


def drawing(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """Return the file: a background, and the parts on it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="back" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def picture_of_format(title: str, lines: Sequence[Line]) -> str:
    """Return the matrix to the left, the arrays that store it to the right."""
    top = MARGIN + 30
    parts = [text(MARGIN, MARGIN + 10, title, "title")]
    for at, row in enumerate(MATRIX):
        cells = [value_cell(at, value) if value else ("", "cell") for value in row]
        parts += [box(MARGIN + x * CELL, top + at * CELL, cell) for x, cell in enumerate(cells)]
    left = MARGIN + len(MATRIX[0]) * CELL + 40 + LABEL
    y: float = top
    for number, (name, line) in enumerate(lines):
        y += GAP / 2 if name and number else 0
        parts.append(text(left - 10, y + CELL / 2 + 5, name, anchor="end"))
        parts += [box(left + x * CELL, y, cell) for x, cell in enumerate(line)]
        y += CELL
    widest = max(len(cells) for _, cells in lines)
    height = max(y, top + len(MATRIX) * CELL) + MARGIN
    return drawing(left + widest * CELL + MARGIN, height, title, parts)


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
        parts += [text(MARGIN + 12, y + 42 + LINE * at, line) for at, line in enumerate(lines)]
        y += height + STEP
    return drawing(width, y - STEP + MARGIN, "The stages of a program", parts)


def arrow(x: float, start: float, end: float, label: str) -> list[str]:
    """Return an arrow down, with the name of a pass beside it."""
    return [
        f'<path class="arrow" d="M{x} {start} V{end}"/>',
        f'<path class="head" d="M{x - 5} {end - 2} h10 l-5 8 z"/>',
        text(x + 14, (start + end) / 2 + 5, label, "note"),
    ]


def files() -> dict[Path, str]:
    """Return the content of every picture."""
    drawings = {
        "csr": picture_of_format("CSR: rows dense, columns compressed", csr()),
        "ell": picture_of_format("ELL: equally many slots in each row", ell()),
        "bsr": picture_of_format("BSR: dense blocks, stored as in CSR", bsr()),
        "hyb": picture_of_format("HYB: buckets of rows, an ELL matrix for each width", hyb()),
        "stages": picture_of_stages(),
    }
    return {FOLDER / f"{name}.svg": content for name, content in drawings.items()}
