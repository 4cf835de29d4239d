"""A program in which a tensor is stored in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gossamer_ir.core.build import index
from gossamer_ir.nodes import FormatDescription, Module
from gossamer_ir.transform.decomposition.decompose_function import decompose_function
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.instantiated_format import NamedFormat
from gossamer_ir.transform.decomposition.rows_of_parts import RowsOf, none_initialize
from gossamer_ir.traversal.substitute import substitute
from gossamer_support.message_texts import amount


def program_in_parts(
    module: Module,
    buffers: Sequence[str],
    formats: Mapping[str, FormatDescription],
    *,
    fixed_sizes: Mapping[str, Mapping[str, int]],
    rows: RowsOf = none_initialize,
) -> Module:
    """Return a program at the coordinate stage in which parts are stored instead of sparse buffers.

    `formats` has the format of each part by its name, `fixed_sizes` those of its sizes that become constants,
    `rows` the parts that initialize results. Raises `DecompositionError`.

    >>> program_in_parts(Module("loop", (), "f"), ["A"], {}, fixed_sizes={})
    Traceback (most recent call last):
    ...
    gossamer_ir.transform.decomposition.decomposition_error.DecompositionError: The program has 0 functions \
of the loop stage; expected one of the coordinate stage.
    """
    if len(module.functions) != 1 or module.stage != "coordinate":
        raise DecompositionError(
            "program",
            f"The program has {amount(len(module.functions), 'function')} of the {module.stage} stage; "
            "expected one of the coordinate stage.",
        )
    parts = [
        NamedFormat(name, _with_sizes(format, fixed_sizes.get(name, {})))
        for name, format in formats.items()
    ]
    decomposed = decompose_function(module.functions[0], buffers, parts, rows=rows)
    return replace(module, functions=(decomposed,))


def _with_sizes(description: FormatDescription, sizes: Mapping[str, int]) -> FormatDescription:
    """Return a description with constants instead of some of its sizes. Before the decomposition, which
    then proves more about the slots."""
    fixed: FormatDescription = substitute(
        description, {name: index(size) for name, size in sizes.items()}
    )
    params = tuple(param for param in description.params if param.name not in sizes)
    return replace(fixed, params=params)
