"""The arrays of a model, as contenders get them: in this process, or as a file.

Contenders in environments of their own import this module, so it needs NumPy and SciPy only.
"""

from __future__ import annotations

# Interpreters of other contenders have no msgspec.
from dataclasses import dataclass, field  # noqa: TID251
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array

TRAINING = "training"


# Interpreters of other contenders have no msgspec.
@dataclass(frozen=True, eq=False)
class ModelCase:
    """A model with its inputs: `arrays` by name and `sizes` that are not shapes. A call is the forward pass,
    and, of the `step` training, also the backward pass from the gradient `seed`. Its result are the output
    and, of training, the gradients of the arrays in `leaves`."""

    model: str
    step: str
    arrays: dict[str, Array]
    leaves: tuple[str, ...]
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def is_training(self) -> bool:
        return self.step == TRAINING


def write_model_case(case: ModelCase, folder: Path) -> dict[str, Any]:
    """Write the arrays to a folder and return the rest."""
    for name, array in case.arrays.items():
        np.save(folder / f"{name}.npy", array)
    return {
        "model": case.model,
        "step": case.step,
        "arrays": list(case.arrays),
        "leaves": list(case.leaves),
        "sizes": case.sizes,
    }


def read_model_case(folder: Path, description: dict[str, Any]) -> ModelCase:
    """Read a case that `write_model_case` has written."""
    return ModelCase(
        model=description["model"],
        step=description["step"],
        arrays={name: np.load(folder / f"{name}.npy") for name in description["arrays"]},
        leaves=tuple(description["leaves"]),
        sizes=description["sizes"],
    )


def dense_mask(indptr: Array, indices: Array) -> Array:
    """Return a mask of bools that is true at the positions of a pattern."""
    length = len(indptr) - 1
    parts = (np.ones(len(indices), bool), indices, indptr)
    mask: Array = sparse.csr_matrix(parts, shape=(length, length)).toarray()
    return mask
