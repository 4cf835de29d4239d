"""The whole language on one page: expressions, statements, axes, buffers, functions, modules.

Nodes only hold data; behavior is in functions over nodes. Every name is an identifier that is unique in
its function. Nodes have no source positions: a *place* is a path of field names and tuple indices. All
sizes and all variables of loops, blocks and iterations are int64. Index arrays may be stored in narrower
types; an explicit `Cast` widens them at the load. The verifier has the stages that allow each node
(`gossamer_ir.verify.stages.node_checks`), `docs/language.md` shows them.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, Union, get_args

import msgspec

Name: TypeAlias = str
"""The name of a parameter, axis, buffer, variable or reducer. It may be replaced by another one throughout a
function; a text that is a `str` may not, such as a dtype, or the name of a function."""
Label: TypeAlias = str
"""The name of a block or iteration, by which schedules address it. Labels are a namespace of their own."""

Scope: TypeAlias = Literal["global", "local", "shared", "warp", "fragment"]
"""The memory of a buffer, in this order: global memory, the registers or stack of one thread, the shared
memory of a thread block, the registers of a warp, the operand fragments of a matrix instruction."""

StageName: TypeAlias = Literal["coordinate", "position", "loop", "flat"]
STAGES: tuple[StageName, ...] = get_args(StageName)
"""The stages of modules, in the order of lowering."""
SearchKind: TypeAlias = Literal["exact", "lower", "upper"]
SEARCH_KINDS: tuple[SearchKind, ...] = get_args(SearchKind)
RelationKind: TypeAlias = Literal["subset", "disjoint", "covers"]
RELATION_KINDS: tuple[RelationKind, ...] = get_args(RelationKind)
ThreadTag: TypeAlias = Literal[
    "blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z"
]
ReduceOp: TypeAlias = Literal["add", "mul", "min", "max", "and", "or"]
ShuffleOp: TypeAlias = Literal["xor", "down"]
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
    """The base class of nodes: frozen, tagged with the class name when encoded, strict when decoded.

    A frozen node cannot be part of a cycle, so the garbage collector need not track it (`gc=False`), and
    its hash is computed once.
    """


# --- expressions -----------------------------------------------------------------------------


class Const(Node, frozen=True):
    """A constant: a dtype and the canonical text of the value (see `constants`), which keeps NaN and -0.0."""

    dtype: str
    text: str


class Var(Node, frozen=True):
    """A scalar parameter, a `Let`, or the variable of a loop, block or iteration."""

    name: Name
    dtype: str


class Unary(Node, frozen=True):
    """`neg` for numbers, `not` for bools, `bitnot` for integers."""

    op: UnaryOp
    operand: Expr


class Binary(Node, frozen=True):
    """A binary operation; both operands and the result have one dtype.

    Integers wrap. `div` is for floats. `floordiv` and `floormod` round toward minus infinity, and give 0
    if an integer is divided by 0. `and` and `or` are for bools. `min` and `max` propagate NaN. The count
    of `shl` and `shr` is unsigned; a count of at least the number of bits gives 0, or -1 for `shr` of a
    negative number.
    """

    op: BinaryOp
    lhs: Expr
    rhs: Expr


class Compare(Node, frozen=True):
    """A comparison of operands of one dtype; the result is a bool in each lane."""

    op: CompareOp
    lhs: Expr
    rhs: Expr


class Cast(Node, frozen=True):
    """A conversion of a value. Integers wrap. Float to integer truncates toward zero, saturates at the
    limits of the dtype, and gives 0 for NaN. Conversions to float round to nearest, ties to even. A
    conversion to bool compares with zero."""

    dtype: str
    value: Expr


class Reinterpret(Node, frozen=True):
    """A bit cast to another dtype with as many bits per lane. The result for a
    pointer, `Var(name, "handle")`, is the address of its first element as an int64."""

    dtype: str
    value: Expr


class Select(Node, frozen=True):
    """Selects an operand by a condition; both operands are evaluated."""

    condition: Expr
    if_true: Expr
    if_false: Expr


class IfThenElse(Node, frozen=True):
    """Selects an operand by a condition; only the selected operand is evaluated."""

    condition: Expr
    if_true: Expr
    if_false: Expr


class Call(Node, frozen=True):
    """A call of a pure function in `math_functions.FUNCTIONS` (exp, sqrt, fma, ...).

    `popcount(x)` is the number of bits that are set, `ctz(x)` the number of zeros below the lowest bit that
    is set; that of 0 is the number of bits. `find_nth_bit(x, n)` is the position of the set bit that has n
    set bits below it (n is unsigned), or the number of bits if there is none. `tf32(x)` rounds the fraction
    of x to 10 bits, ties away from zero: tensor cores multiply numbers of float32 with such fractions.
    """

    function: str
    args: tuple[Expr, ...]
    dtype: str


class Load(Node, frozen=True):
    """Reads a buffer by coordinates (coordinate stage), positions (position stage) or plain indices.

    Lanes whose `predicate` is false read nothing and have the value of `passthrough`; a load has both of
    these or neither. Indices are scalars, or vectors of the same number of lanes. A last index that is a
    stride-1 `Ramp`, after scalar indices, reads contiguous elements; any other vector index is a gather.
    """

    buffer: Name
    indices: tuple[Expr, ...]
    dtype: str
    predicate: Expr | None = None
    passthrough: Expr | None = None


class Search(Node, frozen=True):
    """The position of `value` in `buffer[*prefix, begin:end]`, as an index of the buffer's last dimension
    (so `begin <= result`).

    `exact`: the position of the element equal to value, or -1 if there is none;
    `lower`: the first position whose element is >= value, or `end` if there is none;
    `upper`: the first position whose element is > value, or `end` if there is none.

    The elements must not decrease from begin to end, which facts guarantee for the index arrays of axes.
    If some do, the result is unspecified: any position from begin to end, for `exact` -1 or the position
    of an equal element.
    """

    kind: SearchKind
    buffer: Name
    prefix: tuple[Expr, ...]
    begin: Expr
    end: Expr
    value: Expr


class VScale(Node, frozen=True):
    """The number of 128-bit units in a scalable vector of the machine, an int64."""


class Lanes(Node, frozen=True):
    """A number of lanes: `count`, or `count * vscale` if scalable."""

    count: int
    scalable: bool = False


class Ramp(Node, frozen=True):
    """The vector base, base + stride, base + 2 * stride, ..."""

    base: Expr
    stride: Expr
    lanes: Lanes


class Broadcast(Node, frozen=True):
    """The vector with `value` in every lane."""

    value: Expr
    lanes: Lanes


class LaneReduce(Node, frozen=True):
    """The lanes of a vector, combined by a reducer in an unspecified order."""

    op: ReduceOp
    value: Expr


class TransposeReduce(Node, frozen=True):
    """The vector whose lane u is the reduction of the lanes of `values[u]`, in an unspecified order. There
    are 2, 4, ... or 64 values of one dtype. Their lanes may be scalable; those of the result are fixed."""

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
    """A rectangular part of a buffer, one range per dimension."""

    buffer: Name
    ranges: tuple[Range, ...]


class BlockIter(Node, frozen=True):
    """A block variable: its domain, its kind (spatial or reduction) and the value bound to it.

    The value must lie in the domain wherever the body or the init of the block runs; where only the
    predicate is evaluated, it may lie outside. The domain may load, in bounds. The interpreter raises an
    error for a program that violates this; kernels neither evaluate nor check the domain.
    """

    var: Name
    kind: Literal["S", "R"]
    domain: Range
    value: Expr


# --- statements ------------------------------------------------------------------------------


class Store(Node, frozen=True):
    """Writes a buffer; where `predicate` is false nothing is written.

    `nontemporal` is a hint that the written elements will not be read soon, so that they need not stay in a
    cache. The effect of the store is the same.
    """

    buffer: Name
    indices: tuple[Expr, ...]
    value: Expr
    predicate: Expr | None = None
    nontemporal: bool = False


class Combine(Node, frozen=True):
    """Combines elements of several buffers with values by a reducer of the function. The old elements are
    the reducer's `lhs`, the values of the stores its `rhs`; its results are stored simultaneously. The
    buffers are distinct, and no index or value reads any of them."""

    reducer: Name
    stores: tuple[Store, ...]


class Atomic(Node, frozen=True):
    """An atomic read-modify-write of one element by a scalar value; the order of concurrent updates is
    unspecified. Statements that run at once with it do not access the buffer in any other way: those of one
    launch, or of one branch of fused loops, and all others of a function."""

    op: AtomicOp
    buffer: Name
    indices: tuple[Expr, ...]
    value: Expr


class Let(Node, frozen=True):
    """Binds a variable until the end of the enclosing body."""

    var: Var
    value: Expr


class Allocate(Node, frozen=True):
    """Allocates a buffer until the end of the enclosing body. Its shape may depend on run-time values."""

    buffer: Buffer


class If(Node, frozen=True):
    """Runs `then_body` if the condition holds, else `else_body`."""

    condition: Expr
    then_body: tuple[Stmt, ...]
    else_body: tuple[Stmt, ...] = ()


class While(Node, frozen=True):
    """Runs the body while the condition holds. The condition is evaluated before each iteration."""

    condition: Expr
    body: tuple[Stmt, ...]


class For(Node, frozen=True):
    """A loop of `var` over start, ..., start + extent - 1; it has no iteration if extent <= 0.

    `thread` is set if and only if kind is `thread_binding`. For a `parallel` loop, `weight` is the
    cumulative work before iteration `var`: a monotone expression in `var` that is also defined for
    start + extent. `grain` is the weight below which another thread does not pay off.
    """

    var: Name
    start: Expr
    extent: Expr
    body: tuple[Stmt, ...]
    kind: Literal["serial", "parallel", "vectorized", "unrolled", "thread_binding"] = "serial"
    thread: ThreadTag | None = None
    weight: Expr | None = None
    grain: Expr | None = None
    annotations: Annotations = ()


class Block(Node, frozen=True):
    """The unit of scheduling: a body with its iterators.

    `init` runs once for every output element that the block visits, before any update of it: just before
    the outermost loop that feeds a reduction iterator, and only once if several points of the block write
    the same element. The body does not run where `predicate` is false. `reads` and `writes` are the
    declared regions; None means that they are derived from the body.
    """

    name: Label
    iters: tuple[BlockIter, ...]
    body: tuple[Stmt, ...]
    init: tuple[Stmt, ...] = ()
    predicate: Expr | None = None
    reads: tuple[Region, ...] | None = None
    writes: tuple[Region, ...] | None = None
    annotations: Annotations = ()


class OverAxis(Node, frozen=True):
    """One axis of an iteration."""

    axis: Name


class FuseAxes(Node, frozen=True):
    """Consecutive axes, each the parent of the next one, iterated by one loop over their elements."""

    axes: tuple[Name, ...]


class AttachAxis(Node, frozen=True):
    """One axis whose fiber is selected by the coordinate of the iterator over `parent`."""

    axis: Name
    parent: Name


IterationAxis: TypeAlias = Union[OverAxis, FuseAxes, AttachAxis]


class Iteration(Node, frozen=True):
    """A sparse iteration, with one variable and one letter of `kinds` (S: spatial, R: reduction) for each
    axis; the axes of a `FuseAxes` count one by one. `init` has the same meaning as in `Block`."""

    name: Label
    axes: tuple[IterationAxis, ...]
    kinds: str
    vars: tuple[Name, ...]
    body: tuple[Stmt, ...]
    init: tuple[Stmt, ...] = ()
    annotations: Annotations = ()


class Prefetch(Node, frozen=True):
    """A hint that an element will be read soon. The element may be out of bounds: a prefetch never faults.
    Its indices are evaluated, however, so the loads in them must be in bounds."""

    buffer: Name
    indices: tuple[Expr, ...]


class Guard(Node, frozen=True):
    """A bounds check: if the condition is false, the kernel stops with status OUT_OF_BOUNDS and the name of
    the buffer."""

    condition: Expr
    buffer: Name


class Barrier(Node, frozen=True):
    """Makes each thread of a block wait until all of them have reached it: what a thread wrote before it, the
    others read after it. Outside of the loops over the threads of a block it has no effect, since the
    statement after such a loop runs when all of its iterations have ended."""


class Shuffle(Node, frozen=True):
    """Binds a variable, until the end of the enclosing body, to the value that another thread has: in groups
    of `width` consecutive threads of a block, counted along x, y and z, thread n gets that of thread
    `n ^ offset` (`xor`) or `n + offset` (`down`). All threads of a group reach it together. If there is no
    such thread in the group, the value is unspecified. A width is a power of two, at most 32."""

    op: ShuffleOp
    var: Var
    value: Expr
    offset: int
    width: int = 32


class AsyncCopy(Node, frozen=True):
    """Begins a copy to shared memory: its body is a store of what it loads from global memory, of 4, 8 or 16
    bytes. Elements have their values, and may be accessed, after a `WaitGroup` of the thread for the group of
    the copy; other threads need a barrier after that. On a machine without such copies it is the store."""

    body: tuple[Stmt, ...]


class CommitGroup(Node, frozen=True):
    """Makes a group of the copies that a thread has begun since its last one, possibly none. Outside of the
    loops over the threads of a block, each thread does so."""


class WaitGroup(Node, frozen=True):
    """Waits until at most `pending` groups of copies of a thread are not complete: those that were committed
    last. Outside of the loops over the threads of a block, each thread does so."""

    pending: int


class ParallelFor(Node, frozen=True):
    """Calls `function(begin, end, *args)` for chunks that partition [start, start + extent), in any order
    and on several threads. `weight` (an expression in `var`) and `grain` have the same meaning as in
    `For`. A pointer argument is `Var(name, "handle")`, where name is a handle parameter or an allocated
    buffer of the caller."""

    function: str
    var: Name
    start: Expr
    extent: Expr
    args: tuple[Expr, ...]
    weight: Expr | None = None
    grain: Expr | None = None


class ThreadExtent(Node, frozen=True):
    """The number of threads of a launch along one thread axis."""

    tag: ThreadTag
    extent: Expr


class Launch(Node, frozen=True):
    """Runs `function(*args)`: over a grid of threads on a device, once on a host."""

    function: str
    args: tuple[Expr, ...]
    threads: tuple[ThreadExtent, ...] = ()


Stmt: TypeAlias = Union[
    Store, Combine, Atomic, Let, Allocate, If, While, For, Block, Iteration, Prefetch, Guard,
    Barrier, Shuffle, AsyncCopy, CommitGroup, WaitGroup, ParallelFor, Launch,
]  # fmt: skip


# --- axes ------------------------------------------------------------------------------------


class DenseFixed(Node, frozen=True):
    """An axis that stores every coordinate 0, ..., length - 1, for each element of its parent if it has
    one."""

    name: Name
    length: Expr
    parent: Name | None = None


class DenseVaried(Node, frozen=True):
    """An axis with the coordinates 0, ..., indptr[p + 1] - indptr[p] - 1 for element p of its parent.
    `length` bounds the coordinates, `nnz` is the number of all elements (None: the last one of indptr)."""

    name: Name
    parent: Name
    length: Expr
    nnz: Expr | None
    indptr: Name
    indptr_dtype: str = "int32"


class CompressedFixed(Node, frozen=True):
    """An axis with `width` slots for each element of its parent, their coordinates in `indices`. If it is
    padded, an unused slot holds `length` and is not an element."""

    name: Name
    parent: Name
    length: Expr
    width: Expr
    indices: Name
    indices_dtype: str = "int32"
    sorted: bool = True
    unique: bool = True
    padded: bool = True


class CompressedVaried(Node, frozen=True):
    """An axis with the slots indptr[p], ..., indptr[p + 1] - 1 for element p of its parent, their
    coordinates in `indices`."""

    name: Name
    parent: Name
    length: Expr
    nnz: Expr | None
    indptr: Name
    indices: Name
    indptr_dtype: str = "int32"
    indices_dtype: str = "int32"
    sorted: bool = True
    unique: bool = True
    padded: bool = False


class BitmaskVaried(Node, frozen=True):
    """An axis with the slots indptr[p], ..., indptr[p + 1] - 1 for element p of its parent. Their
    coordinates, ascending, are the positions of the bits that are set in words[p]: a fiber has no more
    coordinates than a word has bits."""

    name: Name
    parent: Name
    length: Expr
    nnz: Expr | None
    indptr: Name
    words: Name
    indptr_dtype: str = "int32"
    words_dtype: str = "uint64"


Axis: TypeAlias = Union[DenseFixed, DenseVaried, CompressedFixed, CompressedVaried, BitmaskVaried]


# --- relations and facts ---------------------------------------------------------------------


class Relation(Node, frozen=True):
    """A relation of two sets: subset(left, right), disjoint(left, right) or covers(left, right). At the
    coordinate and position stage the sets are the elements of two axes, identified by their coordinates
    from the root; later they are the values of two index buffers, segment by segment."""

    kind: RelationKind
    left: Name
    right: Name


class InRange(Node, frozen=True):
    """Every value of the buffer lies in [low, high)."""

    buffer: Name
    low: Expr
    high: Expr


class Monotone(Node, frozen=True):
    """The values of the buffer never decrease along its last dimension."""

    buffer: Name


class HasValue(Node, frozen=True):
    """The element of the one-dimensional buffer at `index` is `value`."""

    buffer: Name
    index: Expr
    value: Expr


class ProductSteps(Node, frozen=True):
    """The buffer holds prefix sums of products: for adjacent elements,
    `buffer[i + 1] - buffer[i] == (left[i + 1] - left[i]) * (right[i + 1] - right[i])`. All three
    buffers are one-dimensional."""

    buffer: Name
    left: Name
    right: Name


class SortedSegments(Node, frozen=True):
    """Within each segment [indptr[p], indptr[p + 1]) the values never decrease; if unique, they strictly
    increase. Without indptr, a segment is a row of the buffer's last dimension."""

    buffer: Name
    indptr: Name | None
    unique: bool


class Distinct(Node, frozen=True):
    """No two elements of the buffer have the same value."""

    buffer: Name


class BitCounts(Node, frozen=True):
    """In element p of the buffer, indptr[p + 1] - indptr[p] bits are set, all of them below `length`. The
    elements of a buffer with several dimensions are counted in row-major order."""

    buffer: Name
    indptr: Name
    length: Expr


class PaddedSlots(Node, frozen=True):
    """A slot of the buffer that holds `length` is unused: it is not an element."""

    buffer: Name
    length: Expr


Fact: TypeAlias = Union[
    Relation, InRange, Monotone, HasValue, ProductSteps, SortedSegments, Distinct, BitCounts, PaddedSlots
]  # fmt: skip


# --- reducers --------------------------------------------------------------------------------


class Reducer(Node, frozen=True):
    """A user-declared combiner of tuples. For each component there is a variable in `lhs`, one in `rhs`, an
    expression in `results` (of these variables only) and a constant in `identity`. The user guarantees
    that the combiner is associative and commutative, and that `identity` is neutral; it is not checked."""

    name: Name
    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    results: tuple[Expr, ...]
    identity: tuple[Const, ...]


# --- buffers, functions, modules -------------------------------------------------------------


class SparseBuffer(Node, frozen=True):
    """Values over axes, stored in the order of a loop nest over the elements of the axes.

    `handle` is the parameter that the buffer is bound to (None: the function allocates it). `fill` is the
    value of an absent coordinate, and of a position beyond a varied fiber (None: zero). `extra_storage` is
    the number of elements that are stored after the last one: along the last axis, this many positions
    beyond each fiber are valid, and alias the beginning of the next fiber. If several varied axes share an
    ancestor, `offsets` is the handle of an array of prefix sums over the elements of that ancestor. The
    terms are the products of the fiber lengths of these axes, without fixed axes after the last varied one.
    """

    name: Name
    axes: tuple[Name, ...]
    dtype: str
    handle: Name | None = None
    scope: Scope = "global"
    fill: Const | None = None
    extra_storage: int = 0
    offsets: Name | None = None


class Buffer(Node, frozen=True):
    """A dense row-major buffer. `handle` has the same meaning as in `SparseBuffer`."""

    name: Name
    shape: tuple[Expr, ...]
    dtype: str
    handle: Name | None = None
    scope: Scope = "global"


AnyBuffer: TypeAlias = Union[SparseBuffer, Buffer]


class Param(Node, frozen=True):
    """A parameter: a pointer if its dtype is `handle`, a scalar otherwise. Sizes are int64."""

    name: Name
    dtype: str


class Function(Node, frozen=True):
    """A function. `relations` are declared by the user between axes. `facts` hold for the buffers that
    callers pass, and are checked at the call. Both are kept by lowering."""

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
    """Functions of one stage; `entry` is the name of the one that is called from outside."""

    stage: StageName
    functions: tuple[Function, ...]
    entry: str


# --- formats ---------------------------------------------------------------------------------


class IndexMap(Node, frozen=True):
    """A map from `vars` to `results`; loads in the results read index arrays of the format."""

    vars: tuple[Name, ...]
    results: tuple[Expr, ...]


class FormatDescription(Node, frozen=True, omit_defaults=True):
    """The storage of a tensor: axes, a buffer of values, further index arrays, and the map from the
    coordinates of the buffer's axes to logical coordinates (None: the identity). `more_buffers` belong to
    other tensors that share the axes. `shape` has the logical sizes: a slot whose coordinates are beyond them
    is not an element (None: the lengths of the axes, or all that the map reaches). `facts` say which index
    arrays have distinct values."""

    name: str
    params: tuple[Param, ...]
    axes: tuple[Axis, ...]
    buffer: SparseBuffer
    index_arrays: tuple[Buffer, ...] = ()
    map: IndexMap | None = None
    more_buffers: tuple[SparseBuffer, ...] = ()
    shape: tuple[Expr, ...] | None = None
    facts: tuple[Fact, ...] = ()


EXPRS: tuple[type[Any], ...] = get_args(Expr)
STMTS: tuple[type[Any], ...] = get_args(Stmt)
AXES: tuple[type[Any], ...] = get_args(Axis)
FACTS: tuple[type[Any], ...] = get_args(Fact)
"""The members of each union, for `isinstance` and for tests that a table covers all of them."""
