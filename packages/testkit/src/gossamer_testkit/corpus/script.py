"""Programs as scripts, by name, for tests of a compiler.

`_position` and `_loop` in a name give the stage of the script; the others are of the coordinate stage.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from gossamer_ir.errors import ArgumentError
from gossamer_support.typed_calls import typed

SUFFIX = ".txt"


def script_names() -> tuple[str, ...]:
    """Return the names of all scripts, sorted. Those that end with `_paper` use the paper's spelling, the
    others the RFC's.

    >>> "csr_to_bsr" in script_names()
    True
    """
    folder = files("gossamer_testkit.corpus") / "scripts"
    names = [file.name.removesuffix(SUFFIX) for file in folder.iterdir()]
    return tuple(sorted(names))


@typed
@cache
def script(name: str) -> str:
    """Return the text of a script; raise `ArgumentError` (`scripts.unknown`) if there is none of this name.

    >>> print(script("csr_to_bsr").splitlines()[-1].strip())
    B[io, jo, ii, ji] = A[io * rows + ii, jo * columns + ji]
    """
    if name not in script_names():
        raise ArgumentError(
            "scripts.unknown",
            f"There is no script '{name}'.",
            hint="gossamer_testkit.script_names() lists those it has.",
        )
    return (files("gossamer_testkit.corpus") / "scripts" / f"{name}{SUFFIX}").read_text()
