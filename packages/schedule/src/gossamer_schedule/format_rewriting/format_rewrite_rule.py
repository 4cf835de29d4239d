"""`FormatRewriteRule`: a format in which buffers are stored, with the maps between the indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias, overload

from msgspec.structs import replace

from gossamer_ir.arith.evaluate_integer import NotArithmeticError, evaluate_integer
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Expr, FormatDescription, IndexMap, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_schedule.definition.required_format import required_format
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.format_rewriting.index_map_functions import index_map_of
from gossamer_support.message_texts import amount
from gossamer_support.typed_calls import typed

SAMPLES = (1, 2, 3, 5)
"""The values of all symbolic sizes for which the maps of a rule are tested."""

AnyIndexMap: TypeAlias = IndexMap | Callable[..., Any]
Description: TypeAlias = FormatDescription | str | Callable[..., Any]
AxisMap: TypeAlias = Mapping[str, Sequence[str]]
"""The new axes of each axis."""


class FormatRewriteRule:
    """The format of a part, as SparseTIR describes it. `format_decompose` applies a list of rules.

    `new_format_desc` is a description or its script, with `@T.format` or the published `@T.prim_func`. There
    are three forms:

    * `FormatRewriteRule(name, new_format_desc, buffers_to_rewrite, axes_before_rewrite, axes_after_rewrite,
      axis_map, idx_map, inv_idx_map)`, as in the system that was published with the paper
    * `FormatRewriteRule(name, new_format_desc, buffers_to_rewrite, axis_map, idx_map, inv_idx_map)`, as in
      the request for comments to TVM. The axes before are the keys of `axis_map`, and those after are the
      axes of the description's buffer
    * `FormatRewriteRule(name, new_format_desc, buffers_to_rewrite)`, if the description has the map
      (`T.sp.map`, or the published `inv_idx_map`) or needs none

    `idx_map` takes the indices of an element, and returns those in the new format; `inv_idx_map` is the
    inverse. Both are Python functions. Parameters after the indices are sizes of the description by their
    names, which stay symbolic. `axis_map` has the new axes of each axis.

    Raises `ScheduleError` with a code `schedule.format_rewrite_rule.*`:

    * `.format`: not a description, or not a valid script
    * `.signature`: none of the forms
    * `.axes`: `axis_map` is not one of these axes, or a result of `inv_idx_map` depends on others
    * `.map`: not a function of that many indices
    * `.inverse`: `inv_idx_map` does not invert `idx_map`; the error has the indices

    >>> bsr = '''
    ... @T.prim_func
    ... def bsr(
    ...     a: T.handle, indptr: T.handle, indices: T.handle,
    ...     mb: T.int32, nb: T.int32, nnzb: T.int32, block_size: T.int32,
    ... ) -> None:
    ...     IO = T.dense_fixed(mb)
    ...     JO = T.sparse_variable(IO, (nb, nnzb), (indptr, indices), "int32")
    ...     II = T.dense_fixed(block_size)
    ...     JI = T.dense_fixed(block_size)
    ...     A = T.match_sparse_buffer(a, (IO, JO, II, JI), "float32")
    ...     T.evaluate(0)
    ... '''
    >>> rule = FormatRewriteRule(
    ...     "bsr", bsr, ["A"], {"I": ["IO", "II"], "J": ["JO", "JI"]},
    ...     lambda i, j, block_size: (i // block_size, j // block_size, i % block_size, j % block_size),
    ...     lambda io, jo, ii, ji, block_size: (io * block_size + ii, jo * block_size + ji),
    ... )
    >>> rule.axes_before_rewrite, rule.axes_after_rewrite
    (('I', 'J'), ('IO', 'JO', 'II', 'JI'))
    """

    @overload
    def __init__(
        self,
        name: str,
        new_format_desc: Description,
        buffers_to_rewrite: Sequence[str],
        axes_before_rewrite: Sequence[str],
        axes_after_rewrite: Sequence[str],
        axis_map: AxisMap,
        idx_map: AnyIndexMap,
        inv_idx_map: AnyIndexMap,
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        new_format_desc: Description,
        buffers_to_rewrite: Sequence[str],
        axis_map: AxisMap,
        idx_map: AnyIndexMap,
        inv_idx_map: AnyIndexMap,
    ) -> None: ...

    @overload
    def __init__(
        self, name: str, new_format_desc: Description, buffers_to_rewrite: Sequence[str]
    ) -> None: ...

    @typed
    def __init__(
        self,
        name: str,
        new_format_desc: Description,
        buffers_to_rewrite: Sequence[str],
        *maps: Sequence[str] | AxisMap | AnyIndexMap | None,
        axes_before_rewrite: Sequence[str] | None = None,
        axes_after_rewrite: Sequence[str] | None = None,
        axis_map: AxisMap | None = None,
        idx_map: AnyIndexMap | None = None,
        inv_idx_map: AnyIndexMap | None = None,
    ) -> None:
        by_name = _AxesAndMaps(
            axes_before_rewrite, axes_after_rewrite, axis_map, idx_map, inv_idx_map
        )
        before, after, *given_maps = _with_positional(by_name, maps)
        self.name = name
        self.buffers_to_rewrite = tuple(buffers_to_rewrite)
        self.description = _description(new_format_desc)
        self.axes_before_rewrite: tuple[str, ...] | None = None
        self.axes_after_rewrite = self.description.buffer.axes
        if all(index_map is None for index_map in given_maps):
            return
        axes, forward, inverse = _required_maps(given_maps, self.description)
        self.axes_before_rewrite = tuple(axes if before is None else before)
        if after is not None:
            self.axes_after_rewrite = tuple(after)
        self._require_axes(axes)
        self.description = self._with_map(axes, forward, inverse)

    def _require_axes(self, axis_map: AxisMap) -> None:
        before, after = self.axes_before_rewrite or (), self.axes_after_rewrite
        mapped = [axis for axes in axis_map.values() for axis in axes]
        if sorted(after) != sorted(self.description.buffer.axes):
            raise _axes_error(
                f"The axes after the rewrite are {', '.join(after)}; those of the description's buffer are "
                f"{', '.join(self.description.buffer.axes)}."
            )
        if sorted(axis_map) != sorted(before) or sorted(mapped) != sorted(after):
            raise _axes_error(
                f"axis_map maps {', '.join(axis_map)} to {', '.join(mapped)}; expected {', '.join(before)} "
                f"to {', '.join(after)}, each once."
            )

    def _with_map(
        self, axis_map: AxisMap, idx_map: AnyIndexMap, inv_idx_map: AnyIndexMap
    ) -> FormatDescription:
        """Return the description with the map from its indices to those before the rewrite."""
        described, before = self.description, self.axes_before_rewrite or ()
        sizes = [param.name for param in described.params if param.dtype != "handle"]
        taken = {param.name for param in described.params}
        vars = {axis: _var(axis, taken) for axis in self.axes_after_rewrite}
        inverse = index_map_of(
            inv_idx_map,
            tuple(vars.values()),
            sizes=sizes,
            results=len(before),
            name="inv_idx_map",
        )
        forward = index_map_of(
            idx_map,
            [_var(axis, taken) for axis in before],
            sizes=sizes,
            results=len(vars),
            name="idx_map",
        )
        _require_inverse(forward, inverse, sizes)
        vars_by_axis = dict(zip(self.axes_after_rewrite, inverse.vars, strict=True))
        for axis, result in zip(before, inverse.results, strict=True):
            others = set(vars_by_axis) - set(axis_map[axis])
            used = sorted(other for other in others if vars_by_axis[other] in free_vars(result))
            if used:
                raise _axes_error(
                    f"The index along '{axis}' depends on the axis '{used[0]}', which axis_map does not map "
                    "it to."
                )
        ordered = IndexMap(
            tuple(vars_by_axis[axis] for axis in described.buffer.axes), inverse.results
        )
        return replace(described, map=ordered, shape=_shape(described, ordered))


class _AxesAndMaps(NamedTuple):
    """The axes before and after the rewrite, and the maps between them and between their indices."""

    axes_before_rewrite: Sequence[str] | None
    axes_after_rewrite: Sequence[str] | None
    axis_map: AxisMap | None
    idx_map: AnyIndexMap | None
    inv_idx_map: AnyIndexMap | None


def _with_positional(by_name: _AxesAndMaps, positional: tuple[Any, ...]) -> _AxesAndMaps:
    """Return the arguments with those that are passed by position: the three maps, or the axes before them.
    Their number tells which is which."""
    match len(positional):
        case 0:
            return by_name
        case 3:
            return _AxesAndMaps(
                by_name.axes_before_rewrite, by_name.axes_after_rewrite, *positional
            )
        case 5:
            return _AxesAndMaps(*positional)
    raise _signature_error(f"{amount(3 + len(positional), 'argument')}")


def _required_maps(
    maps: Sequence[Any], description: FormatDescription
) -> tuple[AxisMap, AnyIndexMap, AnyIndexMap]:
    axis_map, idx_map, inv_idx_map = maps
    if axis_map is None or idx_map is None or inv_idx_map is None:
        raise _signature_error("some of axis_map, idx_map and inv_idx_map")
    # Two maps of one format could contradict each other.
    if description.map is not None:
        raise _signature_error("maps, and a description with a map of its own")
    return axis_map, idx_map, inv_idx_map


def _description(description: Description) -> FormatDescription:
    if isinstance(description, FormatDescription):
        return description
    if not isinstance(description, str) and not callable(description):
        raise schedule_error(
            "format_rewrite_rule.format",
            f"The format is {description!r}; expected a description or its script.",
        )
    return required_format(description, "format_rewrite_rule.format")


def _var(axis_name: str, taken: set[str]) -> str:
    """Return the name of an index along an axis, other than those of parameters.

    >>> _var("IO", {"io"})
    'io_'
    """
    name = axis_name.lower()
    while name in taken:
        name += "_"
    return name


def _shape(described: FormatDescription, index_map: IndexMap) -> tuple[Expr, ...] | None:
    """Return the sizes of the tensor if each index is that along an axis; None if one is unknown."""
    lengths = {axis.name: axis.length for axis in described.axes}
    along = dict(zip(index_map.vars, described.buffer.axes, strict=True))
    sizes = [
        lengths[along[result.name]]
        for result in index_map.results
        if isinstance(result, Var) and result.name in along
    ]
    return tuple(sizes) if len(sizes) == len(index_map.results) else None


def _require_inverse(forward: IndexMap, inverse: IndexMap, sizes: Sequence[str]) -> None:
    """Test that the inverse restores all small indices, for a few values of the sizes."""
    # Digits of mixed radix are wrong at their first carry if they are wrong at all.
    count = 12 if len(forward.vars) <= 2 else 6
    for size in SAMPLES:
        values = dict.fromkeys(sizes, size)
        for indices in product(range(count), repeat=len(forward.vars)):
            try:
                middle = _evaluate_map(forward, indices, values)
                restored = tuple(_evaluate_map(inverse, middle, values))
            except (ZeroDivisionError, NotArithmeticError, KeyError):
                raise schedule_error(
                    "format_rewrite_rule.map",
                    "The maps can only use integers, their parameters, +, -, *, // and %, and cannot divide "
                    "by zero.",
                ) from None
            if restored != indices:
                sampled = f" if each size is {size}" if sizes else ""
                raise schedule_error(
                    "format_rewrite_rule.inverse",
                    f"idx_map maps {indices} to {tuple(middle)}, which inv_idx_map maps to "
                    f"{restored}{sampled}.",
                )


def _evaluate_map(
    index_map: IndexMap, indices: Sequence[int], sizes: Mapping[str, int]
) -> list[int]:
    values = {**sizes, **dict(zip(index_map.vars, indices, strict=True))}
    return [evaluate_integer(result, values) for result in index_map.results]


def _signature_error(actual: str) -> ScheduleError:
    return schedule_error(
        "format_rewrite_rule.signature",
        f"The rule has {actual}; expected axis_map, idx_map and inv_idx_map after the buffers, with or "
        "without axes_before_rewrite and axes_after_rewrite before them, or a description with a map.",
    )


def _axes_error(message: str) -> ScheduleError:
    return schedule_error("format_rewrite_rule.axes", message)
