"""Programs as scripts, by name: what a compiler must lower right. Those with `_position` and `_loop` in
their names are written as of these stages, the others as of the coordinate stage."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from gossamer_ir.core.typed_calls import typed
from gossamer_ir.errors import ArgumentError

SUFFIX = ".txt"


def script_names() -> tuple[str, ...]:
    """The names of all scripts, sorted. One that ends with `_paper` is written in the paper's
    spelling, the others in the RFC's.

    >>> "csr_to_bsr" in script_names()
    True
    """
    folder = files("gossamer_testkit.corpus") / "scripts"
    names = [found.name.removesuffix(SUFFIX) for found in folder.iterdir()]
    return tuple(sorted(names))


@typed
@cache
def script(name: str) -> str:
    """The text of a script; `ArgumentError` (`scripts.unknown`) where there is none of this name.

    >>> print(script("csr_to_bsr").splitlines()[-1].strip())
    B[io, jo, ii, ji] = A[io * rows + ii, jo * columns + ji]
    """
    if name not in script_names():
        raise ArgumentError(
            "scripts.unknown",
            f"There is no script '{name}'.",
            hint="gossamer_testkit.script_names() lists those that there are.",
        )
    return (files("gossamer_testkit.corpus") / "scripts" / f"{name}{SUFFIX}").read_text()
