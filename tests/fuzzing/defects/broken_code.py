"""Code generators with one planted defect each, which random programs of the later stages must detect as
machine code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

from tests.fuzzing.defects.planted import Planted


@dataclass(frozen=True)
class Defect(Planted):
    """A defect of code generation."""

    package = "gossamer_llvm"
    of: str = "emit_llvm_ir"

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Makes this process generate code with the defect."""
        with patch("gossamer_generic_cpu.codegen.compiler.emit_llvm_ir", _emit_of(self)):
            yield


@cache
def _emit_of(defect: Defect) -> Callable[..., str]:
    emit_llvm_ir: Callable[..., str] = defect.imported(defect.package, defect.of)
    return emit_llvm_ir


DEFECTS = (
    Defect(
        "lanes that wrap around are taken for the first ones", home="values.masks",
        line="return emitter.info.overflow.bound(ramp.base) + _max_lanes(ramp) <= MAX_INT64",
        instead="return True",
    ),
    Defect(
        "every vector has the lanes that are left of the first one", home="values.masks",
        line="""sub {bound.typed}, {base.text}")
    some =""",
        instead="""sub {bound.typed}, 0")
    some =""",
    ),
    Defect(
        "a load is available where its memory may be written", home="emitter.function_info",
        line="""load.buffer in self.unchanging and all(
            node.buffer in self.unchanging and node.predicate is None
""",
        instead="""all(
            node.predicate is None
""",
    ),
    Defect(
        "a quotient is rounded to zero", home="values.division",
        line="_rounds_down(emitter, remainder, divisor), lower, quotient",
        instead="_rounds_down(emitter, remainder, divisor), quotient, quotient",
    ),
    Defect(
        "a quotient by zero is one by one", home="values.division",
        line="if literal_value(rhs):", instead="if True:",
    ),
)  # fmt: skip
