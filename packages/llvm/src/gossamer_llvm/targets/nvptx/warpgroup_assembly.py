"""The assembly of `wgmma`, for which LLVM has no intrinsics: products that the threads of four warps begin,
and wait for.

Instructions run while the threads go on, and neither the accumulator nor A may be in another register before
the wait. All of it is therefore one statement of assembly: LLVM, which does not know this, cannot copy
registers in between. Only if a loop begins a product in each iteration, and no other statement reads the
accumulator or A, may a product be pending at the end of an iteration: sums then stay in their registers.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gossamer_support.typed_calls import typed

_CONSTRAINTS = {"float": "f", "i32": "r", "i64": "l"}
PROXY_FENCE = 'call void asm sideeffect "fence.proxy.async.shared::cta;", "~{memory}"()'
"""A thread executes this instruction between its stores to shared memory and the barrier before a product:
the instructions of products read shared memory by another way (the asynchronous proxy) than threads do."""


class WarpgroupOperands(msgspec.Struct, frozen=True):
    """The operands of an instruction, as typed values of LLVM: A as four registers or one descriptor, the
    descriptor of B, and the metadata.

    >>> WarpgroupOperands(("i64 %a",), "i64 %b", "i32 %e").metadata
    'i32 %e'
    """

    a: tuple[str, ...]
    b: str
    metadata: str


@typed
def warpgroup_assembly(
    instruction: str,
    sums: Sequence[Sequence[str]],
    steps: Sequence[WarpgroupOperands],
    *,
    selector: int,
    immediates: str,
    pending: int = 0,
) -> tuple[str, str]:
    """Return the type of a call and the call itself, which adds products to accumulators, each given by its
    typed values of LLVM, and returns all of these. The steps belong to one accumulator after the other, again
    and again. `immediates` are the last operands of each instruction. The call returns when all groups of
    products but the last `pending` ones are complete.

    >>> step = WarpgroupOperands(("i64 %a",), "i64 %b", "i32 %e")
    >>> type_, call = warpgroup_assembly("wgmma", (("i32 %c",) * 2,), (step,), selector=0, immediates="")
    >>> type_, call.count("wgmma $0"), call.partition('", "')[2].partition('"')[0]
    ('{ i32, i32 }', 0, '=&r,=&r,0,1,l,l,r,~{memory}')
    """
    inputs = [value for values in sums for value in values]
    count, lines = len(inputs), ["wgmma.fence.sync.aligned;"]
    types = [value.partition(" ")[0] for value in inputs]
    for number, step in enumerate(steps):
        size = len(sums[number % len(sums)])
        results = _register_list(number % len(sums) * size, size)
        # Results have numbers, too, and their initial values are the first inputs.
        first = count + len(inputs)
        left = f"${first}" if len(step.a) == 1 else _register_list(first, len(step.a))
        b, metadata = (f"${first + len(step.a) + place}" for place in range(2))
        operands = [results, left, b, metadata, str(selector), "is_added", immediates]
        lines.append(f"{instruction} {', '.join(filter(None, operands))};")
        inputs += [*step.a, step.b, step.metadata]
    lines += ["wgmma.commit_group.sync.aligned;", f"wgmma.wait_group.sync.aligned {pending};"]
    added = "setp.ne.b32 is_added, 1, 0;"
    text = " ".join(("{ .reg .pred is_added;", added, *lines, "}"))
    return _call(text, inputs, types)


@typed
def warpgroup_wait_assembly(sums: Sequence[str]) -> tuple[str, str]:
    """Return the type of a call and the call itself, which waits for all products, and returns their sums.

    >>> warpgroup_wait_assembly(("i32 %c",))[1].count("wgmma.wait_group.sync.aligned 0;")
    1
    """
    types = [value.partition(" ")[0] for value in sums]
    return _call("wgmma.wait_group.sync.aligned 0;", list(sums), types)


def _call(text: str, inputs: Sequence[str], types: Sequence[str]) -> tuple[str, str]:
    """Return the type of a call of assembly and the call itself; the first inputs are changed in place."""
    count = len(types)
    constraints = [
        # Results are written before the last A is read: `&` keeps them apart from inputs of equal values.
        *(f"=&{_CONSTRAINTS[type_]}" for type_ in types),
        *map(str, range(count)),
        *(_CONSTRAINTS[value.partition(" ")[0]] for value in inputs[count:]),
        "~{memory}",
    ]
    result = f"{{ {', '.join(types)} }}"
    return (
        result,
        f'call {result} asm sideeffect "{text}", "{",".join(constraints)}"({", ".join(inputs)}) convergent',
    )


def _register_list(first: int, count: int) -> str:
    return "{" + ", ".join(f"${first + number}" for number in range(count)) + "}"
