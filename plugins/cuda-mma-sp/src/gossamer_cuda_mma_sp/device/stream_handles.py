"""Streams of any package, as the handles that the driver takes."""

from __future__ import annotations

from typing import Any

from gossamer_cuda_mma_sp.driver.cuda_driver import DEFAULT_STREAM
from gossamer_ir.errors import ArgumentError

_ATTRIBUTES = ("cuda_stream", "ptr", "handle")
"""Attributes with the handle of a stream: of PyTorch, CuPy, and PyCUDA and Numba."""


def stream_handle(stream: object) -> int:
    """Return the handle of a stream: an integer, None for the default one, an object with `__cuda_stream__`,
    or a stream of PyTorch, CuPy, PyCUDA or Numba. `ArgumentError` (`cuda.stream`) for anything else.

    >>> from types import SimpleNamespace
    >>> stream_handle(None), stream_handle(SimpleNamespace(cuda_stream=7))
    (0, 7)
    """
    if stream is None:
        return DEFAULT_STREAM
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    description: Any = getattr(stream, "__cuda_stream__", None)
    if description is not None:
        _, number = description() if callable(description) else description
        return int(number)
    for name in _ATTRIBUTES:
        # Numba's is a pointer of ctypes, with a value.
        handle: Any = getattr(stream, name, None)
        number = getattr(handle, "value", handle)
        if isinstance(number, int):
            return number
    raise ArgumentError(
        "cuda.stream",
        f"The stream of the context has the type '{type(stream).__qualname__}'; expected a handle, or an "
        "object with __cuda_stream__.",
        hint="Pass torch.cuda.current_stream().cuda_stream, for example.",
    )
