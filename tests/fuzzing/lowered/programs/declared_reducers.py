"""Random user-declared reducers, and statements that combine elements by them."""

from __future__ import annotations

from tests.fuzzing.lowered.programs.expression_text import Terms
from tests.fuzzing.lowered.programs.lines import Lines, under
from tests.fuzzing.lowered.programs.scope import Drawn, DrawnReducer, Scope, Variable

PLAIN = (
    ("a + b", "zero"),
    ("T.max(a, b)", "least"),
    ("T.min(a, b)", "most"),
    ("T.if_then_else(a < b, b, a)", "least"),
)
"""Operations on single values, with their identities."""
BEST = "lambda i, a, j, b: (T.Select(a > b or (a == b and i < j), i, j), T.Select(a >= b, a, b))"
"""The first of the largest values, independent of the order."""


def draw_reducers(scope: Scope) -> Lines:
    """Lines that declare a reducer of single values and one of pairs of an index and a value."""
    dtype = scope.choose([item.dtype for item in scope.buffers if item.role == "value"])
    scope.reducers = [DrawnReducer("fold", (dtype,)), DrawnReducer("best", ("int64", dtype))]
    combined, kind = scope.choose(PLAIN)
    least = _identity("least", dtype)
    return [
        f"fold = T.comm_reducer(lambda a, b: {combined}, {_identity(kind, dtype)})",
        f"best = T.comm_reducer({BEST}, ({_identity('most', 'int64')}, {least}))",
    ]


def _identity(kind: str, dtype: str) -> str:
    """The identity of an operation."""
    is_float = dtype == "float32"
    if kind == "zero":
        return f"T.{dtype}({'0.0' if is_float else '0'})"
    if is_float:
        return f'T.{dtype}("{"-inf" if kind == "least" else "inf"}")'
    return f'T.{"min" if kind == "least" else "max"}_value("{dtype}")'


def draw_combine(scope: Scope, terms: Terms) -> Lines:
    """A combination of elements of different buffers; its values read none of them. Nothing if there are no
    buffers."""
    if not scope.reducers:
        return []
    reducer = scope.choose(scope.reducers)
    buffers = _targets(scope, reducer)
    if not buffers:
        return []
    elements = [
        f"{item.name}[{terms.at(item, 1, owned=item.name in scope.shared)}]" for item in buffers
    ]
    return _combined(scope, terms, reducer, elements, buffers)


def draw_reduction(scope: Scope, terms: Terms) -> Lines:
    """A block that reduces along a loop, with or without an init."""
    if not scope.reducers:
        return []
    reducer = scope.choose(scope.reducers)
    buffers = [item for item in _targets(scope, reducer) if len(item.sizes) == 1]
    if len(buffers) < len(reducer.dtypes) or any(item.name in scope.shared for item in buffers):
        return []
    rows, columns = scope.fresh("i"), scope.fresh("i")
    sizes = scope.choose(("n", "T.int64(4)")), scope.choose(("n", "m", "T.int64(3)"))
    with scope.inside():
        scope.vars += [Variable(f"v{rows}", sizes[0])]
        by_size = {item.sizes[0]: item for item in buffers}
        row = f"v{rows}" if list(by_size) == [sizes[0]] else f"v{rows} % {{}}"
        elements = [f"{item.name}[{row.format(item.sizes[0])}]" for item in buffers]
        init = [
            f"{element} = T.{dtype}({scope.choose((0, 1))})"
            for element, dtype in zip(elements, reducer.dtypes, strict=True)
        ]
        scope.vars += [Variable(f"v{columns}", sizes[1])]
        where = [f"T.where({terms.condition(0)})"] if scope.chance(0.2) else []
        body = [
            f"v{rows} = T.axis.spatial({sizes[0]}, {rows})",
            f"v{columns} = T.axis.reduce({sizes[1]}, {columns})",
            *where,
            *(under("with T.init():", init) if scope.chance(0.6) else []),
            *_combined(scope, terms, reducer, elements, buffers),
        ]
    lines = under(f'with T.block("{scope.fresh("b")}"):', body)
    heads = [f"for {rows} in T.serial({sizes[0]}):", f"for {columns} in T.serial({sizes[1]}):"]
    for head in heads if scope.chance(0.15) else heads[::-1]:
        lines = under(head, lines)
    return lines


def _targets(scope: Scope, reducer: DrawnReducer) -> list[Drawn]:
    """A buffer for each component, none of them twice."""
    drawn: list[Drawn] = []
    for dtype in reducer.dtypes:
        fitting = [
            item
            for item in scope.writable("value", "cell", "index")
            if item.dtype == dtype and not item.is_sparse and item not in drawn
        ]
        if not fitting:
            return []
        drawn.append(scope.choose(fitting))
    return drawn


def _combined(
    scope: Scope, terms: Terms, reducer: DrawnReducer, elements: Lines, buffers: list[Drawn]
) -> Lines:
    shared = scope.shared
    scope.shared = shared | {item.name for item in buffers}
    values = [
        f"{terms.integer(0)} % T.int64(4)" if dtype == "int64" else terms.value(dtype, 1)
        for dtype in reducer.dtypes
    ]
    scope.shared = shared
    targets = ", ".join(elements)
    return [f"{targets} = {reducer.name}({targets}, {', '.join(values)})"]
