"""Baselines in PyTorch, which is optional."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from examples.example import Call, UnavailableError
from gossamer_support.arrays import Array


def torch_call(prepare: Callable[[Any, Any], Callable[[], Any]]) -> Callable[[Any], Call]:
    """Return a baseline from a function of PyTorch and the inputs that prepares a call; its result is made
    an array. Raises `UnavailableError` if PyTorch is not installed."""

    @wraps(prepare)
    def prepare_call(inputs: Any) -> Call:
        try:
            import torch
        except ImportError:
            raise UnavailableError("PyTorch is not installed") from None
        call = prepare(torch, inputs)

        def result() -> Array:
            with torch.inference_mode():
                return np.asarray(call())

        return result

    return prepare_call
