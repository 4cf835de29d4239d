"""`decompose_format`: store a sparse tensor in several formats, and compute with each part."""

from __future__ import annotations

from gossamer_ir.nodes import Function, Iteration
from gossamer_ir.transform.decomposition.decompose_function import decompose_function
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.instantiated_format import NamedFormat
from gossamer_ir.traversal.names import is_identifier
from gossamer_ir.verify.module_in_parts import require_valid_parts
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.required_format import required_format
from gossamer_schedule.errors import schedule_error


@primitive(stages=("coordinate",))
def decompose_format(
    root: Cursor[Function],
    buffers: tuple[str, ...],
    *,
    names: tuple[str, ...],
    formats: tuple[str, ...],
    converts: bool = False,
    function: str | None = None,
) -> Change:
    """Store sparse buffers, which share their axes, in parts: one for each of `formats`.

    A format is the script of a description; its entry in `names` is added to the names of its parameters,
    axes and buffers. Each iteration over the buffers is replaced by one for each part. Elements outside of
    the buffers are initialized once: by a part that is proved to visit all of them, which then comes first,
    or else before all parts. The function takes the parts instead of the undivided tensor. If it
    `converts`, it takes both, and copies the elements first. Together, the parts must hold each element of
    the tensor once. The result's names are those of the new iterations.

    Raises `ScheduleError` with a code `schedule.decompose_format.*`:

    * `.names`: not one identifier for each format, or one twice
    * `.format`: not a valid description
    * `.dimensions`, `.count`: a format has another number of dimensions or buffers than the tensor
    * `.shape`: a format has one size for two dimensions of different sizes
    * `.buffer`: not a sparse buffer of the function
    * `.axes`: the buffers do not share their axes, or an iteration does not visit them
    * `.access`: an iteration uses another element than the one that it visits
    * `.statement`, `.nested`: a buffer is used outside of iterations, or in nested ones
    * `.init`: an init depends on a reduced axis, or writes both the buffers and others
    * `.fill`: a format stores zeros that are not elements, and they would count
    * `.conflict`: elements of a part may have the same coordinates, and the iteration assigns to these

    >>> from gossamer_testkit.examples import SPMM_COORDINATE
    >>> from gossamer_testkit.show import body_text
    >>> ell = '''
    ... @T.format
    ... def ell(data: T.handle, indices: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
    ...     A = T.sp.match_buffer(data, (I, J), "float32")
    ... '''
    >>> result = decompose_format(SPMM_COORDINATE, ("A",), names=("p", "q"), formats=(ell, ell))
    >>> print(body_text(result.module))
    with T.sp.iteration([I_p, J_p, K], "SRS", "csrmm_p") as [i_p, j_p, k_1]:
        with T.init():
            C[i_p, k_1] = 0.0
        C[i_p, k_1] = C[i_p, k_1] + A_p[i_p, j_p] * B[j_p, k_1]
    with T.sp.iteration([I_q, J_q, K], "SRS", "csrmm_q") as [i_q, j_q, k_2]:
        C[i_q, k_2] = C[i_q, k_2] + A_q[i_q, j_q] * B[j_q, k_2]
    """
    parts = [
        NamedFormat(name, required_format(text, "decompose_format.format"))
        for name, text in zip(_required_names(names, formats), formats, strict=True)
    ]
    try:
        changed = decompose_function(root.function, buffers, parts, converts=converts)
        result = root.with_function(changed)
        require_valid_parts(result.module, undivided=root.module)
    except DecompositionError as error:
        raise schedule_error(f"decompose_format.{error.reason}", str(error)) from None
    before = {stmt.name for stmt in root.function.body if isinstance(stmt, Iteration)}
    made = [stmt.name for stmt in changed.body if isinstance(stmt, Iteration)]
    return Change(result, tuple(name for name in made if name not in before))


def _required_names(names: tuple[str, ...], formats: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) != len(formats) or len(set(names)) != len(names) or not names:
        raise schedule_error(
            "decompose_format.names",
            f"The names are {names}; expected a different one for each of {len(formats)} formats.",
        )
    for name in names:
        if not is_identifier(f"A_{name}"):
            raise schedule_error(
                "decompose_format.names", f"'{name}' cannot be the end of an identifier."
            )
    return names
