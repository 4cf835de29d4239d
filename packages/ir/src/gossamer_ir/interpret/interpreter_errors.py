"""The errors that an interpreted program may raise."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.errors import GossamerError


class InterpreterError(GossamerError):
    """The program did something undefined. `buffer` is the name of the buffer concerned, if any."""

    def __init__(self, message: str, *, buffer_name: str | None = None) -> None:
        self.buffer = buffer_name
        super().__init__(message)


class AllocationFailed(InterpreterError):  # noqa: N818  (names the event)
    """There is not enough memory for a buffer; `shape` is in elements, `size` in bytes."""

    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        self.shape, self.size = shape, size
        super().__init__(
            f"A buffer of shape {shape} needs {size} bytes, which cannot be allocated."
        )

    def __reduce__(self) -> tuple[type[AllocationFailed], tuple[tuple[int, ...], int]]:
        """Return how another process makes an error with the same message."""
        return AllocationFailed, (self.shape, self.size)


class GuardFailed(InterpreterError):  # noqa: N818  (as above)
    """A guard's condition was false: a kernel would return the status OUT_OF_BOUNDS."""

    def __init__(self, buffer_name: str, why: str = "") -> None:
        self._why = why
        super().__init__(
            f"The guard of buffer '{buffer_name}' failed{why}.", buffer_name=buffer_name
        )

    def __reduce__(self) -> tuple[type[GuardFailed], tuple[str | None, str]]:
        """Return how another process makes an error with the same message."""
        return GuardFailed, (self.buffer, self._why)


def out_of_bounds_error(
    buffer_name: str, indices: Sequence[object], shape: Sequence[int]
) -> InterpreterError:
    """Return the error for an access outside of a buffer."""
    subscript = ", ".join(str(index) for index in indices)
    return InterpreterError(
        f"{buffer_name}[{subscript}] is out of bounds: the shape there is {tuple(shape)}.",
        buffer_name=buffer_name,
    )
