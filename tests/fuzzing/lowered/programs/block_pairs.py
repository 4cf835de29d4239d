"""Random pairs of a producer and a consumer block, which primitives move, inline and cache."""

from __future__ import annotations

from tests.fuzzing.lowered.programs.expression_text import Terms
from tests.fuzzing.lowered.programs.lines import Lines, under
from tests.fuzzing.lowered.programs.scope import Drawn, Scope, Variable

SIZES = ("n", "T.int64(4)", "T.int64(8)")


def draw_pair(scope: Scope, terms: Terms, between: Lines) -> Lines:
    """A buffer, one or two blocks that fill it, and one that reads it, in a loop or not; in some iterations
    of the loop the block in it may store less, or elsewhere. Nothing where there is no buffer to store to."""
    dtype, name = scope.choose(("float32", "int32")), scope.fresh("R")
    sizes = (scope.choose(SIZES), "T.int64(3)") if scope.chance(0.3) else (scope.choose(SIZES),)
    buffer, loop = Drawn(name, dtype, sizes, "value"), scope.fresh("i")
    tail = "," if len(sizes) == 1 else ""
    lines = [f'{name} = T.alloc_buffer(({", ".join(sizes)}{tail}), "{dtype}")']
    is_plain = scope.chance(0.4)
    with scope.inside():
        if not is_plain and scope.chance(0.5):
            lines += _filled(scope, terms, buffer, [], "{0}")
        scope.vars.append(Variable(loop, "T.int64(3)"))
        wheres = ["", "", f"{loop} == 0", f"{loop} != 1", terms.condition()]
        where = "" if is_plain else scope.choose(wheres)
        shifted = f"({{0}} + {loop}) % {sizes[0]}"
        at = "{0}" if is_plain else scope.choose(("{0}", "{0}", f"{sizes[0]} - 1 - {{0}}", shifted))
        inner = _filled(scope, terms, buffer, [f"T.where({where})"] if where else [], at)
        scope.buffers.append(buffer)
        read = _used(scope, terms, buffer)
        if not read:
            return []
        inner += between + read
    if scope.chance(0.7):
        return lines + under(f"for {loop} in T.serial({scope.choose((1, 3, 3))}):", inner)
    return lines + under(f"for {loop} in T.serial(1):", inner)


def _nest(scope: Scope, buffer: Drawn) -> tuple[list[str], list[str]]:
    """The loops over a buffer, and the iterators of a block in them."""
    loops = [scope.fresh("i") for _ in buffer.sizes]
    heads, iters = [], []
    for loop, size in zip(loops, buffer.sizes, strict=True):
        heads.append(f"for {loop} in T.serial({size}):")
        iters.append(f"v{loop} = T.axis.spatial({size}, {loop})")
        scope.vars.append(Variable(f"v{loop}", size))
    return heads, iters


def _filled(scope: Scope, terms: Terms, buffer: Drawn, where: Lines, at: str) -> Lines:
    """A block that stores to each element; sometimes a sum, or only under a condition."""
    with scope.inside():
        heads, iters = _nest(scope, buffer)
        names = [line.split(" ")[0] for line in iters]
        element = f"{buffer.name}[{', '.join([at.format(names[0]), *names[1:]])}]"
        if scope.chance(0.25):
            loop = scope.fresh("i")
            heads.insert(scope.choose((0, len(heads))), f"for {loop} in T.serial(m):")
            iters.append(f"v{loop} = T.axis.reduce(m, {loop})")
            scope.vars.append(Variable(f"v{loop}", "m"))
            value = terms.value(buffer.dtype, 1)
            init = under("with T.init():", [f"{element} = T.{buffer.dtype}(0)"])
            body = [*init, f"{element} = {element} + {value}"]
        else:
            body = [f"{element} = {terms.value(buffer.dtype, 1)}"]
            if scope.chance(0.15):
                body = under(f"if {terms.condition(0)}:", body)
    return _looped(heads, under(f'with T.block("{scope.fresh("b")}"):', [*iters, *where, *body]))


def _used(scope: Scope, terms: Terms, buffer: Drawn) -> Lines:
    pairs = [
        item
        for item in scope.writable("value")
        if item.dtype == buffer.dtype and item.name != buffer.name and item.name not in scope.shared
    ]
    if not pairs:
        return []
    out = scope.choose(pairs)
    with scope.inside():
        heads, iters = _nest(scope, buffer)
        names = [line.split(" ")[0] for line in iters]
        at = names[0] if scope.chance(0.6) else terms.index(buffer.sizes[0], 1)
        load = f"{buffer.name}[{', '.join([at, *names[1:]])}]"
        element = f"{out.name}[{terms.at(out, 1)}]"
        if len(out.sizes) == len(names) and scope.chance(0.5) and not out.is_sparse:
            element = f"{out.name}[{', '.join(f'{v} % {s}' for v, s in zip(names, out.sizes, strict=True))}]"
            if out.sizes == buffer.sizes:
                element = f"{out.name}[{', '.join(names)}]"
        step = scope.choose(
            ("{1}", "{1}", "{0} + {1}", "{0} + {1} * {2}", "T.max({0}, {1})", "{2} - {1}")
        )
        value = step.format(element, load, terms.value(buffer.dtype, 0))
        condition = scope.choose((terms.condition(0), f"{load} > 0"))
        where = [f"T.where({condition})"] if scope.chance(0.25) else []
    lines = [*iters, *where, f"{element} = {value}"]
    return _looped(heads, under(f'with T.block("{scope.fresh("b")}"):', lines))


def _looped(heads: list[str], body: Lines) -> Lines:
    for head in reversed(heads):
        body = under(head, body)
    return body
