"""What a caller passes, made into one value for each parameter of a signature, or refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from gossamer_ir.contracts import Signature

Value: TypeAlias = "np.ndarray[Any, Any] | np.generic | int | float | bool"


class Arguments:
    """The checks of one signature, prepared once."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature

    def check(
        self,
        args: tuple[Value, ...],
        kwargs: Mapping[str, Value],
        *,
        verified: Collection[str] = (),
    ) -> dict[str, Value]:
        """One value for each parameter; `ArgumentError` says what is wrong with one."""
        return dict(zip(self._signature.order, args, strict=False)) | dict(kwargs)
