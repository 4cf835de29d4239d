"""Argument generators of `blockize` and of the primitives that use intrinsics, with those of an invented
machine for every dtype.
"""

from __future__ import annotations

from gossamer_ir.core.dtypes import SCALARS
from gossamer_ir.interchange.records import Intrinsic
from gossamer_ir.nodes import Binary, Block, For, Load, Store
from tests.fuzzing.schedules.argument_generators.scene import (
    ArgumentGenerator,
    Drawn,
    Scene,
    constant_extent,
)

LANES = (2, 3, 4, 8)
VALUES = {"copy": "A[{at}]", "sum": "C[0] + A[{at}]", "dot": "C[0] + A[{at}] * B[{at}]"}
"""The value that each iteration stores, by the kind of intrinsic."""


def blockize(scene: Scene) -> Drawn:
    loop = scene.choose([site for site in scene.loops if _block_of(site.node)])
    return loop and {"loop": loop.node.var}


def tensorize(scene: Scene) -> Drawn:
    fitting = [
        (loop.node.var, f"{kind}_{constant_extent(loop)}_{buffer.dtype}")
        for loop in scene.serial
        if constant_extent(loop) in LANES
        if (block := _block_of(loop.node))
        and isinstance(store := next(iter(block.body), None), Store)
        if (buffer := scene.buffers[store.buffer]) and (kind := _kind_of(store))
    ]
    choice = scene.choose(fitting)
    return choice and {"loop": choice[0], "intrinsic": choice[1]}


def sparse_tensorize(scene: Scene) -> Drawn:
    return tensorize(scene)


def _block_of(loop: For) -> Block | None:
    """The one block in a nest."""
    body = loop.body
    while len(body) == 1 and isinstance(body[0], For):
        body = body[0].body
    return body[0] if len(body) == 1 and isinstance(body[0], Block) else None


def _kind_of(store: Store) -> str | None:
    match store.value:
        case Load():
            return "copy"
        case Binary(op="add", lhs=Load(buffer=same), rhs=Load()) if same == store.buffer:
            return "sum"
        case Binary(op="add", lhs=Load(buffer=same), rhs=Binary(op="mul")) if same == store.buffer:
            return "dot"
    return None


def _intrinsic(kind: str, lanes: int, dtype: str) -> Intrinsic:
    name = f"{kind}_{lanes}_{dtype}"
    value, count = VALUES[kind], lanes if kind == "copy" else 1
    sizes = {"A": lanes, **({"B": lanes} if kind == "dot" else {}), "C": count}
    lines = [
        f'    {buffer} = T.match_buffer({buffer.lower()}, ({size},), "{dtype}")'
        for buffer, size in sizes.items()
    ]
    params = ", ".join(f"{buffer.lower()}: T.handle" for buffer in sizes)
    head = "\n".join((
        "@T.prim_func", f"def {name}({params}):", '    T.func_attr({"sparse_tir_level": 0})', *lines,
    ))  # fmt: skip
    target = "C[{at}]" if kind == "copy" else "C[0]"
    nest = f"""
    for p in T.serial({lanes}):
        with T.block("one"):
            vp = T.axis.{"spatial" if kind == "copy" else "reduce"}({lanes}, p)
            {target.format(at="vp")} = {value.format(at="vp")}
"""
    implementation = "".join(
        f"\n    {target} = {value}".format(at=at) for at in reversed(range(lanes))
    )
    return Intrinsic(name=name, semantics=head + nest, implementation=head + implementation + "\n")


INTRINSICS = tuple(
    _intrinsic(kind, lanes, dtype)
    for kind in VALUES for lanes in LANES for dtype in SCALARS if dtype not in ("handle", "bool")
)  # fmt: skip
GENERATORS: dict[str, ArgumentGenerator] = {
    primitive.__name__: primitive for primitive in (blockize, tensorize, sparse_tensorize)
}
