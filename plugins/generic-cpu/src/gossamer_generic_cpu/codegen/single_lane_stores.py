"""Masked stores of exactly one lane, as scalar stores.

With AVX-512, LLVM 20 fuses a truncation with the masked store of its result. If the mask is a constant with
one active lane, it then stores the element before the truncation: an int32 where an int16 belongs, which
overwrites the next element.
"""

from __future__ import annotations

import re

# Compiled when first used: few kernels have such stores.
_CALL = (
    r"(?:tail )?call void @llvm\.masked\.store\.v\d+(?P<element>i8|i16|i32)\.p0\("
    r"(?P<data><\d+ x i\d+> %[-\w.$]+), ptr (?:[^,%]* )?(?P<pointer>%[-\w.$]+), (?:i32 \d+, )?"
    r"<\d+ x i1> <(?P<mask>i1 (?:true|false)(?:, i1 (?:true|false))*)>\)[^\n]*"
)

_INTEGERS = re.compile(r"@llvm\.masked\.store\.v\d+i(?:8|16|32)\.")


def has_stores_to_scalarize(text: str) -> bool:
    """Return whether LLVM IR may have a store that is replaced, once its masks are constants.

    >>> has_stores_to_scalarize("declare void @llvm.masked.store.v16i8.p0(<16 x i8>, ptr, i32, <16 x i1>)")
    True
    >>> has_stores_to_scalarize("declare void @llvm.masked.store.v4f32.p0(<4 x float>, ptr, i32, <4 x i1>)")
    False
    """
    return _INTEGERS.search(text) is not None


def scalarize_single_lane_stores(text: str) -> str:
    """Return the LLVM IR with a scalar store in place of each masked store of integers whose mask is a
    constant with one active lane.

    >>> operands = "<2 x i8> %v, ptr %p, i32 1, <2 x i1> <i1 false, i1 true>"
    >>> print(scalarize_single_lane_stores(f"call void @llvm.masked.store.v2i8.p0({operands})"))
    %single_lane.0.value = extractelement <2 x i8> %v, i64 1
    %single_lane.0.pointer = getelementptr i8, ptr %p, i64 1
    store i8 %single_lane.0.value, ptr %single_lane.0.pointer, align 1
    """
    return re.sub(_CALL, _scalar_store, text)


def _scalar_store(call: re.Match[str]) -> str:
    lanes = call["mask"].split(", ")
    if lanes.count("i1 true") != 1:
        return call[0]
    # The place in the text, for names that differ.
    name, lane, element = f"%single_lane.{call.start()}", lanes.index("i1 true"), call["element"]
    return "\n".join((
        f"{name}.value = extractelement {call['data']}, i64 {lane}",
        f"{name}.pointer = getelementptr {element}, ptr {call['pointer']}, i64 {lane}",
        f"store {element} {name}.value, ptr {name}.pointer, align {int(element[1:]) // 8}",
    ))  # fmt: skip
