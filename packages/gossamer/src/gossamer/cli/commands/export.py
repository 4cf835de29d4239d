"""`gossamer export`: a kernel as files for programs without Python."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from gossamer.cli.options import TargetName, integer_option, require_dtype_option
from gossamer.cli.scripts import dtype_overrides, operator_module, read_script
from gossamer.operators import ALL_NAMES
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer_formats.internal_api import WIDE_DTYPES
from gossamer_ir.core.dtypes import INDEX_STORAGE
from gossamer_ir.errors import ArgumentError
from gossamer_support.message_texts import either

OptionalFeatures: TypeAlias = Annotated[
    int | None,
    integer_option("--features", help="columns of the dense matrix; any number if not given"),
]


def export(
    program: Annotated[str, typer.Argument(help=f"{', '.join(ALL_NAMES)}, or a script's file")],
    *,
    output: Annotated[str, typer.Option("--output", "-o", help="the directory for the files")],
    features: OptionalFeatures = None,
    dtype: Annotated[str | None, typer.Option(help=either(WIDE_DTYPES))] = None,
    index_dtype: Annotated[str | None, typer.Option(help=either(INDEX_STORAGE))] = None,
    specialize: Annotated[
        list[str] | None,
        typer.Option(metavar="<name=value>", help="fix a parameter; may be repeated"),
    ] = None,
    target: TargetName = DEFAULT_TARGET,
    name: Annotated[str | None, typer.Option(help="name of the files and of the symbol")] = None,
) -> None:
    """Write a kernel as an object file, a C header, a manifest and a shared library, or as PTX.

    The files do not need Python. A C program includes the header and links the object.
    """
    from gossamer.api.export import export as export_program

    if dtype is not None:
        require_dtype_option(dtype)
    _require_index_dtype(index_dtype)
    if program in ALL_NAMES:
        module = operator_module(program, features, dtype=dtype, index_dtype=index_dtype)
        dtypes = None
    else:
        _require_no_features(program, features)
        module = read_script(program)
        dtypes = dtype_overrides(module, dtype=dtype, index_dtype=index_dtype)
    files = export_program(
        module,
        output,
        name=name,
        target=target,
        specialize=_values(specialize or []),
        dtypes=dtypes,
    )
    written = {role: str(path) for role, path in files.files.items()}
    absent = {role: f"none: {reason}" for role, reason in files.missing.items()}
    # The library is made last, and may be missing.
    for role, text in sorted({**written, **absent}.items(), key=lambda item: item[0] == "library"):
        print(f"{role:8}  {text}")


def _require_no_features(program: str, features: int | None) -> None:
    if features is not None:
        raise ArgumentError(
            "option.features",
            f"--features applies to operators ({', '.join(ALL_NAMES)}), and '{program}' is not one of them.",
            hint="Give --specialize NAME=VALUE with the name of the script's parameter.",
        )


def _values(texts: list[str]) -> dict[str, int]:
    """Return the integers of NAME=VALUE options."""
    values = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            values[name.strip()] = int(value)
        except ValueError:
            raise ArgumentError(
                "option.specialize",
                f"--specialize is '{text}'; expected NAME=VALUE with an integer.",
            ) from None
    return values


def _require_index_dtype(index_dtype: str | None) -> None:
    if index_dtype is not None and index_dtype not in INDEX_STORAGE:
        raise ArgumentError(
            "option.storage",
            f"--index-dtype is '{index_dtype}'; expected one of {', '.join(INDEX_STORAGE)}.",
        )
