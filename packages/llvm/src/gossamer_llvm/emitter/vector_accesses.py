"""`VectorAccesses`: the vectors in memory that are aligned to more than the size of an element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from gossamer_ir.nodes import Expr

AccessKey: TypeAlias = tuple[str, tuple[Expr, ...], str]
"""The buffer, the indices and the dtype of an access."""


class VectorAccesses(msgspec.Struct, frozen=True):
    """The vectors with aligned addresses in the code that is being emitted."""

    alignments: Mapping[AccessKey, int] = {}
    """The bytes of which their addresses are multiples."""
    conditions: Mapping[Expr, Expr] = {}
    """The scalar conditions of masks that have all lanes or none."""

    def alignment(self, buffer_name: str, indices: tuple[Expr, ...], dtype: str) -> int | None:
        """Return the bytes of which the address of an access is a multiple; None if that is not proved."""
        return self.alignments.get((buffer_name, indices, dtype))
