"""Indices of an N:M matrix that are loaded from shared memory in words, as metadata of instructions.

A word of metadata has the indices of 4 or 8 groups of one or two rows, which are consecutive bytes of rows
in memory: `W[i, 2 * q + s]`. A lane loads 4, 8 or 16 of them at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gossamer_cuda_mma_sp.codegen.fragments.fragment_layouts import FragmentLayout, Slot
from gossamer_ir.arith.affine import Affine, affine_of
from gossamer_ir.core.build import ONE, index, integer_value
from gossamer_ir.core.dtypes import with_lanes
from gossamer_ir.nodes import Buffer, Expr, For, Lanes, Load, Ramp, Store, Var
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.substitute import substitute
from gossamer_llvm import FieldLoad, warp_loop

_LOADED_BYTES = (4, 8, 16)
_BYTE = "uint8"


def index_loads(store: Store, layout: FragmentLayout, source: Buffer, namer: Namer) -> list[For]:
    """Return the loops that stand for loads of the metadata of a lane, which a store copies from shared
    memory index by index; none if the bytes of a word are not consecutive, or not aligned."""
    load = store.value
    if not isinstance(load, Load) or source.scope != "shared" or source.dtype != _BYTE:
        return []
    words: dict[int, list[Slot]] = {}
    for slot in layout.slots:
        words.setdefault(slot.number, []).append(slot)
    loops = []
    for slots in words.values():
        stores = tuple(_vector_stores(store, load, slots, source))
        if not stores:
            return []
        loops.append(warp_loop(namer.fresh("indices"), _instruction_of(slots), stores))
    return loops


def _instruction_of(slots: Sequence[Slot]) -> FieldLoad:
    """Return the instruction for a word of metadata."""
    pattern = slots[0].pattern
    assert pattern is not None, "the slot is one of metadata"
    mask = pattern.units - 1
    if pattern.slots > 1:
        return FieldLoad(field_bits=2, mask=mask)
    first, second = pattern.legal
    firsts = sum(first << slot.bit for slot in slots if slot.bit is not None)
    return FieldLoad(field_bits=4, mask=mask, scale=second - first, addend=firsts)


def _vector_stores(
    store: Store, load: Load, slots: Sequence[Slot], source: Buffer
) -> Iterator[Store]:
    """Yield a store for each vector of indices of a word, in the order of their bits; none if the word does
    not consist of vectors of one size."""
    in_order = sorted(slots, key=lambda slot: slot.bit or 0)
    places = [_place_of(store, load, slot) for slot in in_order]
    pitch = integer_value(source.shape[-1])
    for count in reversed(_LOADED_BYTES):
        vectors = [places[start : start + count] for start in range(0, len(places), count)]
        if pitch is not None and pitch % count == 0 and all(_is_vector(v, count) for v in vectors):
            for (*outer, first), *_ in vectors:
                indices = (*outer, Ramp(first, ONE, Lanes(count)))
                vector = Load(load.buffer, indices, with_lanes(load.dtype, count))
                yield Store(store.buffer, (index(in_order[0].number),), vector)
            return


def _place_of(store: Store, load: Load, slot: Slot) -> tuple[Expr, ...]:
    """Return the indices of the byte that is loaded for a slot."""
    values = {
        at.name: value
        for at, value in zip(store.indices, slot.indices, strict=True)
        if isinstance(at, Var)
    }
    return tuple(substitute(at, values) for at in load.indices)


def _is_vector(places: Sequence[tuple[Expr, ...]], count: int) -> bool:
    """Return whether so many places follow each other in a row, from a multiple of their number on."""
    *row, start = map(affine_of, places[0])
    is_aligned = all(by % count == 0 for by in (*start.terms.values(), start.constant))
    return (
        len(places) == count
        and is_aligned
        and all(
            [*map(affine_of, outer)] == row and affine_of(last) - start == Affine({}, number)
            for number, (*outer, last) in enumerate(places)
        )
    )
