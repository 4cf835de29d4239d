"""The check of a module in which a tensor was divided into parts."""

from __future__ import annotations

from gossamer_ir.nodes import Module
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.verify.verify_module import diagnostics


def require_valid_parts(module: Module, *, undivided: Module) -> None:
    """Refuse a module over the parts of a tensor that is not valid, if the module over the undivided one is.

    Elements of a part may have the same coordinates, since the map of a format need not be injective. A
    program that assigns to such elements is not valid.

    Raises `DecompositionError`: `conflict`.
    """
    errors = diagnostics(module)
    if errors and not diagnostics(undivided):
        raise DecompositionError(
            "conflict", f"The program over the parts is not valid: {errors[0].message}"
        )
