"""The whole language on one page: expressions, statements, axes, buffers, functions, modules.

Nodes only hold data; what they mean and what may be done with them is in functions over them.
Every name is an identifier that is unique in its function. Nodes carry no source position: a
*place* is a path of field names and tuple indices. Every loop, block and iteration variable and
every size is int64; the storage types of indices are widened by an explicit `Cast` at the load.

Which stage holds which node:

| node                                   | coordinate | position | loop | flat |
|----------------------------------------|:----------:|:--------:|:----:|:----:|
| axes, SparseBuffer                     |     x      |    x     |      |      |
| Iteration, OverAxis, FuseAxes, AttachAxis |  x      |          |      |      |
| Search                                 |            |    x     |  x   |      |
| For, While, Allocate, VScale           |            |    x     |  x   |  x   |
| Block                                  |            |    x     |  x   |      |
| Reducer, Combine                       |     x      |    x     |  x   |      |
| facts                                  |     x      |    x     |  x   |  x   |
| Buffer (shape given)                   |            |    x     |  x   |  x   |
| vectors (Ramp, Broadcast, LaneReduce, TransposeReduce) | | |  x   |  x   |
| Guard                                  |            |    x     |  x   |  x   |
| ParallelFor, Launch, Atomic            |            |          |      |  x   |
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, Union, get_args

import msgspec

Scope: TypeAlias = Literal["global", "local", "shared", "warp", "fragment"]
"""Where a buffer lives: memory, one thread's registers or stack, a thread block's memory, registers
of a warp, operand fragments of a matrix instruction."""

StageName: TypeAlias = Literal["coordinate", "position", "loop", "flat"]
ThreadTag: TypeAlias = Literal[
    "blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z"
]
ReduceOp: TypeAlias = Literal["add", "mul", "min", "max", "and", "or"]
AtomicOp: TypeAlias = Literal["add", "min", "max"]
UnaryOp: TypeAlias = Literal["neg", "not", "bitnot"]
BinaryOp: TypeAlias = Literal[
    "add", "sub", "mul", "div", "floordiv", "floormod", "min", "max",
    "and", "or", "bitand", "bitor", "bitxor", "shl", "shr",
]  # fmt: skip
CompareOp: TypeAlias = Literal["eq", "ne", "lt", "le", "gt", "ge"]
AnnotationValue: TypeAlias = Union[bool, int, str]
Annotations: TypeAlias = tuple[tuple[str, AnnotationValue], ...]


class Node(
    msgspec.Struct, frozen=True, gc=False, cache_hash=True, tag=True, forbid_unknown_fields=True
):
    """What every node is: frozen (so never part of a cycle, and hashed once), tagged with its class
    name, strict when decoded."""


# --- expressions -----------------------------------------------------------------------------


class Const(Node, frozen=True):
    """A constant: its dtype and its canonical text (see `constants`), so that nan and -0.0 survive."""

    dtype: str
    text: str


class Var(Node, frozen=True):
    """A scalar parameter, a let, or the variable of a loop, block or iteration."""

    name: str
    dtype: str


class Unary(Node, frozen=True):
    """`neg` of numbers, `not` of bools, `bitnot` of integers."""

    op: UnaryOp
    operand: Expr


class Binary(Node, frozen=True):
    """Both operands and the result have one dtype. Integers wrap. `div` is of floats; `floordiv` and
    `floormod` round to minus infinity, and are 0 where an integer is divided by 0; `and` and `or` are
    of bools; `min` and `max` propagate NaN. The count of `shl` and `shr` is taken as unsigned: what
    is shifted by all of its bits or more is 0, or -1 for `shr` of a negative number."""

    op: BinaryOp
    lhs: Expr
    rhs: Expr


class Compare(Node, frozen=True):
    """Operands of one dtype; the result is bool (with the operands' lanes)."""

    op: CompareOp
    lhs: Expr
    rhs: Expr


class Cast(Node, frozen=True):
    """Conversion of value. Integers wrap; a float becomes the integer towards zero, the nearest one
    that the dtype has where it is out of range, and 0 where it is NaN; floats round to nearest, ties
    to even; anything to bool compares with zero."""

    dtype: str
    value: Expr


class Reinterpret(Node, frozen=True):
    """The bits of a number as a number of another dtype with as many bits in each lane; those of a
    pointer, `Var(name, "handle")`, as the int64 that is the address of its first element."""

    dtype: str
    value: Expr


class Select(Node, frozen=True):
    """Chooses by condition; both sides are evaluated."""

    condition: Expr
    if_true: Expr
    if_false: Expr


class IfThenElse(Node, frozen=True):
    """Chooses by condition; only the chosen side is evaluated."""

    condition: Expr
    if_true: Expr
    if_false: Expr


class Call(Node, frozen=True):
    """A pure function of `FUNCTIONS` in `math_functions.py` (exp, sqrt, fma, ...)."""

    function: str
    args: tuple[Expr, ...]
    dtype: str


class Load(Node, frozen=True):
    """Reads a buffer. Indices are coordinates, positions, or (loop and flat) plain indices.

    Where `predicate` is false nothing is read and the value is `passthrough`; the two come together.
    Indices are scalars, or vectors of the same lanes: a stride-1 `Ramp` at the end, after scalars, reads a
    run; anything else gathers.
    """

    buffer: str
    indices: tuple[Expr, ...]
    dtype: str
    predicate: Expr | None = None
    passthrough: Expr | None = None


class Search(Node, frozen=True):
    """The position of `value` among `buffer[*prefix, begin:end]`, relative to nothing but the
    buffer's last dimension (so `begin <= result`).

    `exact`: the position of the element equal to value, -1 where there is none;
    `lower`: the first position whose element is >= value, `end` where there is none;
    `upper`: the first position whose element is > value, `end` where there is none.

    The elements must not decrease from begin to end; facts say so of the index arrays of axes. Of
    others any position from begin to end (for `exact` -1, or one of an equal element) may result.
    """

    kind: Literal["exact", "lower", "upper"]
    buffer: str
    prefix: tuple[Expr, ...]
    begin: Expr
    end: Expr
    value: Expr


class VScale(Node, frozen=True):
    """The machine's multiple of 128 bits in a scalable vector, int64."""


class Lanes(Node, frozen=True):
    """How many lanes: `count`, or `count * vscale` when scalable."""

    count: int
    scalable: bool = False


class Ramp(Node, frozen=True):
    """The vector base, base + stride, base + 2 * stride, ..."""

    base: Expr
    stride: Expr
    lanes: Lanes


class Broadcast(Node, frozen=True):
    """The vector with value in each lane."""

    value: Expr
    lanes: Lanes


class LaneReduce(Node, frozen=True):
    """The lanes of a vector combined by a reducer; the order is unspecified."""

    op: ReduceOp
    value: Expr


class TransposeReduce(Node, frozen=True):
    """The vector whose lane u is the lanes of `values[u]` combined by a reducer; the order is
    unspecified. From 2 to 64 values, of one dtype of fixed lanes, both powers of two."""

    op: ReduceOp
    values: tuple[Expr, ...]


Expr: TypeAlias = Union[
    Const, Var, Unary, Binary, Compare, Cast, Reinterpret, Select, IfThenElse, Call, Load, Search,
    VScale, Ramp, Broadcast, LaneReduce, TransposeReduce,
]  # fmt: skip


# --- regions and block iterators -------------------------------------------------------------


class Range(Node, frozen=True):
    """The integers start, ..., start + extent - 1."""

    start: Expr
    extent: Expr


class Region(Node, frozen=True):
    """A box of a buffer, one range per dimension."""

    buffer: str
    ranges: tuple[Range, ...]


class BlockIter(Node, frozen=True):
    """A block variable: its domain, its kind (spatial or reduction) and the value bound to it."""

    var: str
    kind: Literal["S", "R"]
    domain: Range
    value: Expr


# --- statements ------------------------------------------------------------------------------


class Store(Node, frozen=True):
    """Writes a buffer; where `predicate` is false nothing is written."""

    buffer: str
    indices: tuple[Expr, ...]
    value: Expr
    predicate: Expr | None = None


class Combine(Node, frozen=True):
    """Combines elements of buffers with values by a reducer of the function: the elements of all
    stores are the reducer's lhs, their values its rhs, and its results are stored to the elements at
    once. The buffers differ; indices and values read none of them."""

    reducer: str
    stores: tuple[Store, ...]


class Atomic(Node, frozen=True):
    """Combines an element with a value in one step, between whose read and write no other thread does
    so; the order of such steps is unspecified. A function that does so touches no element of the buffer
    otherwise. All are scalars."""

    op: AtomicOp
    buffer: str
    indices: tuple[Expr, ...]
    value: Expr


class Let(Node, frozen=True):
    """Binds a variable, to the end of the enclosing body."""

    var: Var
    value: Expr


class Allocate(Node, frozen=True):
    """A buffer that lives to the end of the enclosing body; sizes may be known at run time only."""

    buffer: Buffer


class If(Node, frozen=True):
    condition: Expr
    then_body: tuple[Stmt, ...]
    else_body: tuple[Stmt, ...] = ()


class While(Node, frozen=True):
    condition: Expr
    body: tuple[Stmt, ...]


class For(Node, frozen=True):
    """A loop of `var` over start, ..., start + extent - 1 (none where extent <= 0).

    `thread` is set if and only if kind is `thread_binding`. For a `parallel` loop `weight` is the
    work before iteration `var` (a cumulative, monotone expression in `var`, defined at start + extent
    too) and `grain` the weight below which a further thread does not pay.
    """

    var: str
    start: Expr
    extent: Expr
    body: tuple[Stmt, ...]
    kind: Literal["serial", "parallel", "vectorized", "unrolled", "thread_binding"] = "serial"
    thread: ThreadTag | None = None
    weight: Expr | None = None
    grain: Expr | None = None
    annotations: Annotations = ()


class Block(Node, frozen=True):
    """A unit of scheduling. `init` runs once for every output element the block visits, before any
    update of it: before the outermost loop that feeds a reduction iterator, and not again where another
    point of the block meets the element. Where `predicate` is false the body does not run. `reads` and
    `writes` are None where they were not declared (they follow from the body)."""

    name: str
    iters: tuple[BlockIter, ...]
    body: tuple[Stmt, ...]
    init: tuple[Stmt, ...] = ()
    predicate: Expr | None = None
    reads: tuple[Region, ...] | None = None
    writes: tuple[Region, ...] | None = None
    annotations: Annotations = ()


class OverAxis(Node, frozen=True):
    """One axis of an iteration."""

    axis: str


class FuseAxes(Node, frozen=True):
    """Consecutive axes, each the child of the one before, run as one loop over their elements."""

    axes: tuple[str, ...]


class AttachAxis(Node, frozen=True):
    """`axis`, its fibre selected by the coordinate of the iterator over `parent`."""

    axis: str
    parent: str


IterationAxis: TypeAlias = Union[OverAxis, FuseAxes, AttachAxis]


class Iteration(Node, frozen=True):
    """A sparse iteration: one variable and one letter of `kinds` (S or R) for each axis, those of a
    `FuseAxes` counted one by one. `init` as in `Block`."""

    name: str
    axes: tuple[IterationAxis, ...]
    kinds: str
    vars: tuple[str, ...]
    body: tuple[Stmt, ...]
    init: tuple[Stmt, ...] = ()
    annotations: Annotations = ()


class Prefetch(Node, frozen=True):
    """A hint that the element will be read soon; it may lie outside the buffer and never faults. Its
    indices are evaluated, so what they read is in bounds."""

    buffer: str
    indices: tuple[Expr, ...]


class Guard(Node, frozen=True):
    """Where condition is false, the kernel stops with status OUT_OF_BOUNDS and this buffer's name."""

    condition: Expr
    buffer: str


class ParallelFor(Node, frozen=True):
    """Calls `function(begin, end, *args)` for chunks that cover [start, start + extent), in any order
    and on several threads. `weight` (in `var`) and `grain` as in `For`. A pointer argument is
    `Var(name, "handle")`, name being a handle parameter or an allocated buffer of the caller."""

    function: str
    var: str
    start: Expr
    extent: Expr
    args: tuple[Expr, ...]
    weight: Expr | None = None
    grain: Expr | None = None


class ThreadExtent(Node, frozen=True):
    tag: ThreadTag
    extent: Expr


class Launch(Node, frozen=True):
    """Runs `function(*args)`, on a device over a grid of threads, on a host once."""

    function: str
    args: tuple[Expr, ...]
    threads: tuple[ThreadExtent, ...] = ()


Stmt: TypeAlias = Union[
    Store, Combine, Atomic, Let, Allocate, If, While, For, Block, Iteration, Prefetch, Guard,
    ParallelFor, Launch,
]  # fmt: skip


# --- axes ------------------------------------------------------------------------------------


class DenseFixed(Node, frozen=True):
    """Every coordinate 0, ..., length - 1 is stored; under a parent, for each element of it."""

    name: str
    length: Expr
    parent: str | None = None


class DenseVaried(Node, frozen=True):
    """Coordinates 0, ..., indptr[p + 1] - indptr[p] - 1 for the parent's element p; length bounds
    them, nnz counts all of them (None: indptr's last element)."""

    name: str
    parent: str
    length: Expr
    nnz: Expr | None
    indptr: str
    indptr_dtype: str = "int32"


class CompressedFixed(Node, frozen=True):
    """`width` slots for each element of the parent, their coordinates in `indices`; when padded, an
    unused slot holds `length` and is no element."""

    name: str
    parent: str
    length: Expr
    width: Expr
    indices: str
    indices_dtype: str = "int32"
    sorted: bool = True
    unique: bool = True
    padded: bool = True


class CompressedVaried(Node, frozen=True):
    """Slots indptr[p], ..., indptr[p + 1] - 1 for the parent's element p, coordinates in `indices`."""

    name: str
    parent: str
    length: Expr
    nnz: Expr | None
    indptr: str
    indices: str
    indptr_dtype: str = "int32"
    indices_dtype: str = "int32"
    sorted: bool = True
    unique: bool = True
    padded: bool = False


Axis: TypeAlias = Union[DenseFixed, DenseVaried, CompressedFixed, CompressedVaried]


# --- relations and facts ---------------------------------------------------------------------


class Relation(Node, frozen=True):
    """Declared between the elements of two axes, each by its coordinates from the root (coordinate and
    position stage), or between the values of two index buffers, segment by segment (later):
    subset(left, right), disjoint(left, right), covers(left, right)."""

    kind: Literal["subset", "disjoint", "covers"]
    left: str
    right: str


class InRange(Node, frozen=True):
    """Every value of the buffer lies in [low, high)."""

    buffer: str
    low: Expr
    high: Expr


class Monotone(Node, frozen=True):
    """The values of the buffer never decrease along its last dimension."""

    buffer: str


class HasValue(Node, frozen=True):
    """The element of the one-dimensional buffer at `index` is `value`."""

    buffer: str
    index: Expr
    value: Expr


class ProductSteps(Node, frozen=True):
    """From each element of the buffer to the next, its values grow by the product of what those of
    `left` and of `right` grow by; all three have one dimension."""

    buffer: str
    left: str
    right: str


class SortedSegments(Node, frozen=True):
    """Within each segment [indptr[p], indptr[p + 1]) the values never decrease; unique: they increase.
    Without indptr a segment is a row of the buffer's last dimension."""

    buffer: str
    indptr: str | None
    unique: bool


class Distinct(Node, frozen=True):
    """No two elements of the buffer have the same value."""

    buffer: str


class PaddedSlots(Node, frozen=True):
    """A slot of the buffer that holds `length` is no element."""

    buffer: str
    length: Expr


Fact: TypeAlias = Union[
    Relation, InRange, Monotone, HasValue, ProductSteps, SortedSegments, Distinct, PaddedSlots
]


# --- reducers --------------------------------------------------------------------------------


class Reducer(Node, frozen=True):
    """A combiner of tuples that the user declares: `results` are of the variables `lhs` and `rhs`
    alone, one of each and a constant of `identity` for every component. That it is associative and
    commutative, and that combining with the identity changes nothing, is the user's promise."""

    name: str
    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    results: tuple[Expr, ...]
    identity: tuple[Const, ...]


# --- buffers, functions, modules -------------------------------------------------------------


class SparseBuffer(Node, frozen=True):
    """Values over axes, stored in the nested enumeration of the axes in order. `handle` is the
    parameter it is bound to (None: allocated by the function); `fill` the value of an absent
    coordinate (None: zero), and of a position beyond a varied fibre. `extra_storage` elements lie behind
    the last: along the last axis, so many positions beyond each fibre name what lies there, which is the
    begin of the next fibre. Where several axes vary below
    one, `offsets` names the handle of the prefix sums, over the elements of that one, of the products
    of how many elements lie below each of the several; fixed axes behind all that vary do not count."""

    name: str
    axes: tuple[str, ...]
    dtype: str
    handle: str | None = None
    scope: Scope = "global"
    fill: Const | None = None
    extra_storage: int = 0
    offsets: str | None = None


class Buffer(Node, frozen=True):
    """An ordinary row-major N-D buffer. `handle` as in `SparseBuffer`."""

    name: str
    shape: tuple[Expr, ...]
    dtype: str
    handle: str | None = None
    scope: Scope = "global"


AnyBuffer: TypeAlias = Union[SparseBuffer, Buffer]


class Param(Node, frozen=True):
    """A parameter: dtype `handle` is a pointer, any other a scalar; a size is int64."""

    name: str
    dtype: str


class Function(Node, frozen=True):
    """One function. `relations` are declared by the user between axes, `facts` hold for buffers that
    callers pass, where they are checked; both outlive lowering."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    axes: tuple[Axis, ...] = ()
    buffers: tuple[AnyBuffer, ...] = ()
    relations: tuple[Relation, ...] = ()
    facts: tuple[Fact, ...] = ()
    annotations: Annotations = ()
    reducers: tuple[Reducer, ...] = ()


class Module(Node, frozen=True):
    """Functions of one stage; `entry` names the one that is called from outside."""

    stage: StageName
    functions: tuple[Function, ...]
    entry: str


# --- formats ---------------------------------------------------------------------------------


class IndexMap(Node, frozen=True):
    """Results as expressions of vars; loads read the index arrays of the format."""

    vars: tuple[str, ...]
    results: tuple[Expr, ...]


class FormatDescription(Node, frozen=True, omit_defaults=True):
    """How a tensor is stored: axes, one buffer of values, further index arrays, and the map from the
    coordinates of the buffer's axes to logical coordinates (None: they are the logical ones).
    `more_buffers` are those of other tensors that share the axes."""

    name: str
    params: tuple[Param, ...]
    axes: tuple[Axis, ...]
    buffer: SparseBuffer
    index_arrays: tuple[Buffer, ...] = ()
    map: IndexMap | None = None
    more_buffers: tuple[SparseBuffer, ...] = ()


EXPRESSIONS: tuple[type[Any], ...] = get_args(Expr)
STATEMENTS: tuple[type[Any], ...] = get_args(Stmt)
AXES: tuple[type[Any], ...] = get_args(Axis)
FACTS: tuple[type[Any], ...] = get_args(Fact)
"""The members of each family, for `isinstance` and for tests that a table covers all of them."""
