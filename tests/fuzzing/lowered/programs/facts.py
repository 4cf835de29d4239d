"""Random facts about buffers that hold for the arguments of the program."""

from __future__ import annotations

from dataclasses import replace

from tests.fuzzing.lowered.programs.declarations import Declarations
from tests.fuzzing.lowered.programs.scope import Drawn

ROLES = ("index", "cell", "extreme", "sorted")
SPARSE = {
    "J_indptr": "T.assume(monotone(J_indptr))",
    "J_indices": "T.assume(in_range(J_indices, 0, 8))",
    "L_indices": "T.assume(in_range(L_indices, 0, 9))",
}
"""The facts that always hold for index arrays of axes."""
SHARE_WITH_FACTS = 0.5
"""The share of programs that declare facts."""


def draw_facts(declared: Declarations) -> list[str]:
    """Lines that declare facts about arrays that the program does not write."""
    rng, lines = declared.rng, list[str]()
    if rng.random() > SHARE_WITH_FACTS:
        return lines
    for name, fact in SPARSE.items():
        if any(item.name == name for item in declared.scope.buffers) and rng.random() < 0.3:
            lines.append(fact)
    for number, buffer in enumerate(declared.scope.buffers):
        if buffer.role in ROLES and not buffer.is_sparse and rng.random() < 0.4:
            facts = _facts(declared, buffer)
            if facts:
                declared.scope.buffers[number] = replace(buffer, role="known")
            lines += facts
    return lines


def _facts(declared: Declarations, buffer: Drawn) -> list[str]:
    rng, name = declared.rng, buffer.name
    facts: list[str] = []
    values = declared.arrays[name.lower() + "_"].ravel().tolist()
    if values and rng.random() < 0.7:
        low, high = min(values), max(values)
        bounds = [f"{min(low, 0)}, {max(high, 7) + 1}"] if abs(low) + abs(high) < 99 else []
        named = {size: value for size, value in declared.sizes.items() if size != "s"}
        bounds += [f"0, {size}" for size, value in named.items() if low >= 0 and high < value]
        if bounds:
            facts.append(f"T.assume(in_range({name}, {rng.choice(bounds)}))")
    if values == sorted(values) and rng.random() < 0.7:
        facts.append(f"T.assume(monotone({name}))")
    if values and rng.random() < 0.3:
        at = rng.randrange(len(values))
        if abs(values[at]) < 99:
            facts.append(f"T.assume(has_value({name}, {at}, {values[at]}))")
    if values == sorted(set(values)) and rng.random() < 0.5:
        facts.append(f"T.assume(sorted_segments({name}, unique=True))")
    return facts
