"""The contract between compiled kernels and their callers: symbol, statuses and workspace.

A kernel is an exported C function `gossamer_kernel(parameters..., struct gossamer_workspace *)` that returns
a status. Backends generate code for it, and callers their own declarations of it: types of ctypes, a header.
"""

from __future__ import annotations

import msgspec

ABI_VERSION = 2
"""Part of every cache key: what follows is compiled into artifacts on disk, so a change needs another."""

KERNEL_SYMBOL = "gossamer_kernel"
"""The one exported symbol."""

OK = 0
OUT_OF_BOUNDS = 1
OUT_OF_MEMORY = 2
INTERRUPTED = 3

NOT_GUARDED = -1
"""The value of `failed_buffer` as long as no bounds check has failed."""

SHORT, LONG = -1, -2
"""Answers of `is_interrupted`, which is 1 to stop and 0 to go on: the portion before took little or much
time."""


class WorkspaceField(msgspec.Struct, frozen=True):
    """A field of `struct gossamer_workspace`: its name, and its declaration in C with `{name}`."""

    name: str
    declaration: str

    @property
    def is_pointer(self) -> bool:
        """True for a pointer to a function; the others are 64-bit integers."""
        return "(*{name})" in self.declaration

    def in_c(self, name: str) -> str:
        """Return the declaration of a variable of the field's type; the type alone for an empty name.

        >>> WorkspaceField("threads", "int64_t {name}").in_c("count")
        'int64_t count'
        """
        return self.declaration.format(name=name).rstrip()


WORKSPACE_FIELDS = (
    WorkspaceField("threads", "int64_t {name}"),
    WorkspaceField(
        "parallel",
        "void (*{name})(void (*function)(void *), void *data, unsigned threads, unsigned flags)",
    ),
    WorkspaceField("failed_buffer", "int64_t {name}"),
    WorkspaceField("is_interrupted", "int64_t (*{name})(int64_t *since)"),
)
"""The number of threads, a function with the signature of GOMP_parallel that runs parallel regions (null:
everything runs in the calling thread), the index of the buffer whose bounds check failed, and a function that
long loops ask whether to stop (null: never)."""


def workspace_field(name: str) -> int:
    """Return the position of a field in the workspace.

    >>> workspace_field("failed_buffer")
    2
    """
    return [field.name for field in WORKSPACE_FIELDS].index(name)
