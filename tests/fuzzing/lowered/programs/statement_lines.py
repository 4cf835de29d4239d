"""Random statements as lines of text."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzzing.lowered.programs.block_pairs import draw_pair
from tests.fuzzing.lowered.programs.declared_reducers import draw_combine, draw_reduction
from tests.fuzzing.lowered.programs.expression_text import Terms
from tests.fuzzing.lowered.programs.extreme_bounds import draw_far
from tests.fuzzing.lowered.programs.lanes import draw_vector
from tests.fuzzing.lowered.programs.lines import Lines, under
from tests.fuzzing.lowered.programs.scope import Drawn, Scope, Variable

DEEPEST = 4
SIMPLE = ("store", "let", "guard", "prefetch", "allocate", "combine", "vector")
"""Kinds of statements without a body."""


class Bodies:
    """Draws statements until the `budget` is spent."""

    def __init__(self, scope: Scope, budget: int, *, has_blocks: bool = False) -> None:
        self.scope, self.budget = scope, budget
        self.weights = IN_BLOCKS if has_blocks else WEIGHTS
        self.terms = Terms(scope)

    def body(self, depth: int = 0, count: int | None = None) -> Lines:
        """Some statements, one after the other."""
        lines: Lines = []
        with self.scope.inside():
            for _ in range(count or self.scope.choose((1, 2, 2, 3))):
                if self.budget <= 0:
                    break
                lines += self.stmt(depth)
        return lines or self.store(depth)

    def stmt(self, depth: int) -> Lines:
        self.budget -= 1
        kinds = {kind: weight for kind, weight in self.weights.items() if self._fits(kind, depth)}
        return STMTS[self.scope.weighted(kinds)](self, depth)

    def _fits(self, kind: str, depth: int) -> bool:
        scope = self.scope
        if kind == "vector" and (scope.own is not None or scope.stage != "loop"):
            return False
        if kind not in SIMPLE and depth >= DEEPEST:
            return False
        if kind in ("combine", "reduction") and not scope.reducers:
            return False
        if kind in ("nest", "handed", "reduction") and (scope.stage == "flat" or scope.in_block):
            return False
        if kind in ("at_once", "atomic") and (
            scope.stage == "flat" or scope.in_block or (scope.own is not None and scope.chance(0.3))
        ):
            return False
        return not (kind in ("while", "atomic") and scope.own is not None)

    # --- simple statements

    def store(self, depth: int) -> Lines:
        scope = self.scope
        roles = scope.weighted({("value",): 6, ("index",): 4, ("cell",): 5, ("extreme",): 1})
        candidates = scope.writable(*roles) or scope.writable("value", "index", "cell")
        if not candidates:
            return ["T.evaluate(0)"]
        return self._stored(scope.choose(candidates))

    def _stored(self, buffer: Drawn) -> Lines:
        scope, terms = self.scope, self.terms
        owned = buffer.name in scope.shared
        at = terms.at(buffer, 1, owned=owned)
        element = f"{buffer.name}[{at}]"
        if buffer.role == "cell" and scope.chance(0.5):
            return [f"{element} = {element} + 1"]
        if buffer.role == "value" and scope.chance(0.45):
            kind = scope.choose(("+", "+", "-", "max", "last"))
            value = terms.value(buffer.dtype, 1)
            if kind == "max":
                return [f"{element} = T.max({element}, {value})"]
            if kind == "last":
                return [f"{element} = {value} - {element}"]
            return [f"{element} = {element} {kind} {value}"]
        return [f"{element} = {terms.stored(buffer)}"]

    def let(self, depth: int) -> Lines:
        scope, terms = self.scope, self.terms
        if scope.chance(0.3):
            dtype, name = scope.choose(("float32", "int32")), scope.fresh("v")
            line = f"{name}: T.{dtype} = {terms.value(dtype, 1)}"
            scope.floats.append((name, dtype))
            return [line]
        name = scope.fresh("x")
        value = terms.search(1) if scope.chance(0.3) else terms.integer(scope.choose((1, 2)))
        scope.vars.append(Variable(name, ""))
        return [f"{name}: T.int64 = {value}"]

    def allocate(self, depth: int) -> Lines:
        """Allocates a buffer of a computed size and fills it."""
        scope, terms = self.scope, self.terms
        name, size, lines = scope.fresh("R"), self._size(), list[str]()
        if scope.chance(0.25):
            return self._allocate_rows(name)
        if not size.isidentifier() and not size.startswith("T.int64(") and scope.chance(0.6):
            bound = scope.fresh("z")
            lines.append(f"{bound}: T.int64 = {size}")
            scope.vars.append(Variable(bound, ""))
            size = bound
        dtype, role = scope.choose((("float32", "value"), ("int32", "value"), ("int64", "index")))
        where = scope.choose(("", "", '", scope="local"'))[1:]
        lines.append(f'{name} = T.alloc_buffer(({size},), "{dtype}"{where})')
        buffer = Drawn(name, dtype, (size,), role)
        loop = scope.fresh("i")
        first = Variable(loop, size)
        scope.vars.append(first)
        lines += under(
            f"for {loop} in T.serial({size}):", [f"{name}[{loop}] = {terms.stored(buffer)}"]
        )
        scope.vars.remove(first)
        scope.buffers.append(buffer)
        scope.private = scope.private | {name}
        return lines

    def _allocate_rows(self, name: str) -> Lines:
        """Allocates a two-dimensional buffer and fills it."""
        scope, dtype = self.scope, self.scope.choose(("float32", "int32"))
        sizes = (
            self._size() if scope.chance(0.3) else "T.int64(4)",
            scope.choose(("m", "T.int64(3)")),
        )
        buffer = Drawn(name, dtype, sizes, "value")
        rows, columns = scope.fresh("i"), scope.fresh("i")
        with scope.inside():
            scope.vars += [Variable(rows, sizes[0]), Variable(columns, sizes[1])]
            store = [f"{name}[{rows}, {columns}] = {self.terms.stored(buffer)}"]
        lines = [f'{name} = T.alloc_buffer(({", ".join(sizes)}), "{dtype}")']
        inner = under(f"for {columns} in T.serial({sizes[1]}):", store)
        scope.buffers.append(buffer)
        scope.private = scope.private | {name}
        return lines + under(f"for {rows} in T.serial({sizes[0]}):", inner)

    def _size(self) -> str:
        scope, terms = self.scope, self.terms
        kind = scope.weighted({"fixed": 1, "size": 2, "read": 6, "sum": 2})
        match kind:
            case "fixed":
                return f"T.int64({scope.choose((1, 4, 8))})"
            case "size":
                return scope.choose(("n", "m"))
            case "sum":
                return f"{terms.leaf()} % T.int64(5) + T.int64({scope.choose((1, 3))})"
        candidates = scope.having("index", "cell")
        if not candidates:
            return "n"
        value = terms.loaded(scope.choose(candidates), scope.choose((0, 1)))
        return scope.choose((f"{value} + 1", f"T.min({value}, T.int64(6)) + 2", value))

    def guard(self, depth: int) -> Lines:
        buffer = self.scope.choose(self.scope.buffers).name
        least = f"{self.terms.leaf()} {self.scope.choose(('>=', '!='))} T.int64(-5)"
        always = self.terms.condition(0) if self.scope.chance(self.scope.careless) else least
        return [f"T.guard({always}, {buffer})"]

    def prefetch(self, depth: int) -> Lines:
        candidates = [item for item in self.scope.buffers if not item.is_sparse]
        buffer = self.scope.choose(candidates)
        at = ", ".join(self.terms.integer(1) for _ in buffer.sizes)
        return [f"T.prefetch({buffer.name}, {at})"]

    # --- statements with bodies

    def branch(self, depth: int) -> Lines:
        lines = under(f"if {self.terms.condition()}:", self.body(depth + 1))
        if self.scope.chance(0.25):
            lines += under("else:", self.body(depth + 1))
        return lines

    def loop(self, depth: int) -> Lines:
        scope = self.scope
        name, kind = scope.fresh("i"), "serial"
        bound = self.bound()
        span = self.span(bound, 0.25)
        if scope.stage != "flat" and bound.startswith("T.int64(") and scope.chance(0.4):
            kind = "unroll"
        with scope.inside():
            scope.vars.append(Variable(name, bound))
            body = self.body(depth + 1)
        if kind == "serial" and bound.startswith("T.int64(") and scope.chance(0.3):
            span += ', annotations={"peel": "last"}'
        return under(f"for {name} in T.{kind}({span}):", body)

    def bound(self) -> str:
        """The extent of a loop, which is small."""
        scope, terms = self.scope, self.terms
        kind = scope.weighted({
            "fixed": 3, "size": 3, "least": 4, "rest": 3, "outer": 2, "read": 6,
            "fiber": 12 if scope.stage == "position" else 0,
        })  # fmt: skip
        match kind:
            case "fiber":
                fibers = [buffer for buffer in scope.buffers if "J_indptr" in buffer.sizes[-1]]
                rows = [var.name for var in scope.vars if var.below == "n"]
                if fibers and rows:
                    return fibers[0].sizes[-1].format(scope.choose(rows))
                return "n"
            case "fixed":
                return f"T.int64({scope.choose((1, 2, 3, 4, 8))})"
            case "size":
                return scope.choose(("n", "m"))
            case "rest":
                return f"{terms.integer(1)} % T.int64(4)"
            case "outer":
                names = [var.name for var in scope.vars if var.below]
                return f"{scope.choose(names)} + 1" if names else "n"
            case "least":
                return f"T.min({terms.integer(1)}, T.int64({scope.choose((2, 3, 5))}))"
        candidates = scope.having("cell", "index")
        return terms.loaded(scope.choose(candidates), 1) if candidates else "m"

    def loop_while(self, depth: int) -> Lines:
        scope, terms = self.scope, self.terms
        fuel = next(buffer for buffer in scope.buffers if buffer.role == "fuel")
        cell = f"{fuel.name}[{scope.rng.randrange(3)}]"
        condition = f"{cell} < {scope.choose((2, 3, 4))}"
        if scope.chance(0.6):
            condition = f"{condition} and {terms.condition()}"
        with scope.inside():
            body = self.body(depth + 1)
        step = [f"{cell} = {cell} + 1"]
        if scope.chance(0.2):
            moving, read = scope.writable("cell"), scope.having("index", "input")
            if moving and read:
                head = f"{scope.choose(moving).name}[{scope.rng.randrange(2)}]"
                load = f"{scope.choose([item for item in read if not item.is_sparse] or read).name}"
                condition = f"{condition} and {load}[{head}] >= {load}[0]"
                step.append(f"{head} = {head} + {scope.choose((1, 2, 4))}")
        body = scope.choose((body + step, step + body))
        first = [f"{cell} = 0"] if scope.chance(0.5) else []
        return first + under(f"while {condition}:", body)

    def at_once(self, depth: int) -> Lines:
        """A parallel or vectorized loop, each iteration of which has its own elements."""
        scope = self.scope
        name = scope.fresh("i")
        kind = scope.choose(("parallel", "parallel", "vectorized"))
        bound = scope.choose(("n", "n", "m", "T.int64(8)", "T.int64(4)"))
        if kind == "vectorized":
            bound = scope.choose(("n", "T.int64(4)", "T.int64(8)"))
        span = self.span(bound, 0.1)
        weight = self.weight(name) if kind == "parallel" and span == bound else ""
        outer = scope.own, scope.shared, scope.private
        taken = [item for item in scope.buffers if item.is_written]
        with scope.inside():
            scope.vars.append(Variable(name, bound))
            scope.own, scope.private = name, frozenset()
            scope.shared = frozenset(item.name for item in taken if scope.chance(0.6))
            if kind == "vectorized":
                body = [
                    line for _ in range(scope.choose((1, 1, 2))) for line in self.store(depth + 1)
                ]
            else:
                body = self.body(depth + 1)
        scope.own, scope.shared, scope.private = outer
        if kind == "parallel" and scope.chance(0.1):
            return under(f'for {name} in T.thread_binding({span}, thread="threadIdx.x"):', body)
        return under(f"for {name} in T.{kind}({span}{weight}):", body)

    def span(self, bound: str, share: float) -> str:
        """A range of so many iterations; its start may be a value that changes."""
        scope = self.scope
        if not scope.chance(share):
            return bound
        cells = [item for item in scope.having("cell", "index") if item.dtype == "int64"]
        starts = ["T.int64(1)", "T.int64(2)", self.terms.integer(0)]
        starts += [f"{item.name}[{scope.rng.randrange(2)}]" for item in cells]
        start = scope.choose(starts)
        return f"{start}, {start} + {bound}"

    def weight(self, name: str) -> str:
        """The weight of a parallel loop, which may be read from a buffer that is written."""
        scope = self.scope
        if not scope.chance(0.3):
            return ""
        cells = [
            item
            for item in scope.having("cell", "index", "known")
            if item.dtype == "int64" and item.sizes[0].startswith("T.int64(")
        ]
        factors = ["3", "T.max(m, 1)"]
        factors += [f"T.max({item.name}[{scope.rng.randrange(2)}], 0)" for item in cells]
        grain = scope.choose(("", ", grain=1", ", grain=2", ", grain=n"))
        return f", weight={name} * {scope.choose(factors)}{grain}"

    def atomic(self, depth: int) -> Lines:
        """A loop whose iterations accumulate into shared elements."""
        scope, terms = self.scope, self.terms
        candidates = [item for item in scope.writable("value", "cell") if not item.is_sparse]
        buffer, name = scope.choose(candidates), scope.fresh("i")
        shared = scope.shared
        with scope.inside():
            scope.vars.append(Variable(name, "n"))
            scope.shared = shared | {buffer.name}
            element = f"{buffer.name}[{terms.at(buffer, 1)}]"
            one = terms.value(buffer.dtype, 1) if buffer.role == "value" else "1"
            step = scope.choose((f"{element} + {one}", f"T.max({element}, {one})"))
            body = [f"{element} = {step}"]
            if scope.chance(0.4):
                body = under(f"if {terms.condition(0)}:", body)
        scope.shared = shared
        return under(f'for {name} in T.parallel(n, annotations={{"atomic": True}}):', body)

    def stale(self, depth: int) -> Lines:
        """A condition, a write to its operands, and a loop that needs the condition to stay the same."""
        scope, terms = self.scope, self.terms
        candidates = [item for item in scope.writable("cell", "index") if not item.is_sparse]
        if not candidates or scope.own is not None:
            return self.branch(depth)
        buffer = scope.choose(candidates)
        at = terms.at(buffer, 0)
        load = f"{buffer.name}[{at}]"
        wide = load if buffer.dtype == "int64" else f"T.int64({load})"
        condition = f"{terms.leaf()} {scope.choose(COMPARED)} {wide}"
        write = f"{load} = {terms.stored(buffer)}"
        inner = self.body(depth + 1) if scope.chance(0.5) else self.halves(depth + 1)
        return under(f"if {condition}:", [write, *inner])

    def halves(self, depth: int) -> Lines:
        """A loop, which may be vectorized, with a condition on its variable."""
        scope, terms = self.scope, self.terms
        name, loop = scope.fresh("i"), scope.choose(("serial", "serial", "serial", "vectorized"))
        bound = self.bound() if loop == "serial" else scope.choose(("n", "T.int64(8)"))
        if scope.stage == "flat" or scope.own is not None or scope.in_block:
            loop = "serial"
        shared, updated, private = scope.shared, scope.own, scope.private
        span = self.span(bound, 0.15)
        with scope.inside():
            scope.vars.append(Variable(name, bound))
            if loop == "vectorized":
                scope.own, scope.private = name, frozenset()
                scope.shared = frozenset(item.name for item in scope.buffers if item.is_written)
            candidates = scope.having("cell", "index", "extreme")
            limits = [terms.integer(1), terms.leaf(), *scope.scalars, terms.wrapped()]
            if candidates:
                limits += [terms.loaded(scope.choose(candidates), 0)] * 2
            limit = scope.choose(limits) + scope.choose(("", "", "", " - 1", " + 1"))
            left = scope.choose((name, name, name, f"{name} + {terms.leaf()}", f"{name} * 2"))
            condition = (
                f"{left} {scope.choose(('<', '<', '<', '>=', '!=', '<=', '==', '>'))} {limit}"
            )
            if scope.chance(0.2):
                condition += f" and {terms.condition(0)}"
            body = under(f"if {condition}:", self.store(depth + 1))
            if scope.chance(0.5):
                body += under("else:", self.store(depth + 1))
            if scope.chance(0.15):
                body += self.store(depth + 1)
        scope.shared, scope.own, scope.private = shared, updated, private
        return under(f"for {name} in T.{loop}({span}):", body)

    def tape(self, depth: int) -> Lines:
        """A buffer that is written at a moving index, and read back."""
        scope, terms = self.scope, self.terms
        cells = [item for item in scope.writable("cell") if item.name not in scope.shared]
        out = [item for item in scope.writable("value") if item.name not in scope.shared]
        if not cells or not out:
            return self.loop(depth)
        cell, name, buffer = scope.choose(cells), scope.fresh("R"), scope.choose(out)
        head = f"{cell.name}[{terms.at(cell, 0)}]"
        if scope.chance(0.7):
            head = f"{cell.name}[{scope.rng.randrange(2)}]"
        size = scope.choose(("T.int64(16)", "T.int64(16)", "n + 8"))
        tape = Drawn(name, buffer.dtype, (size,), "value")
        first, second, outer = (scope.fresh("i") for _ in range(3))
        at = scope.choose(("{0}", "{0}", "{0} + {1}", "{0} * 2", "{1} + {0} * 0"))
        count, step = scope.choose(("n", "T.int64(3)", "m")), scope.choose(("1", "1", "2"))
        with scope.inside():
            scope.vars.append(Variable(first, count))
            value = terms.value(buffer.dtype, 1)
            write = [f"{name}[{at.format(head, first)}] = {value}", f"{head} = {head} + {step}"]
            element = f"{buffer.name}[{terms.at(buffer, 1)}]"
        back = scope.choose((at, "{1}", "{0} - 1 - {1}", at))
        with scope.inside():
            scope.vars.append(Variable(second, count))
            element = f"{buffer.name}[{terms.at(buffer, 1)}]"
            read = [f"{element} = {name}[{back.format(head, second)}]", f"{head} = {head} + {step}"]
        start = [f"{head} = {scope.choose((0, 0, 1))}"]
        again = start if scope.chance(0.7) else []
        lines = [f'{name} = T.alloc_buffer(({size},), "{buffer.dtype}")']
        inner = start + under(f"for {first} in T.serial({count}):", write) + again
        if scope.chance(0.3):
            one = scope.choose((f"{head}", "0", f"{head} - {step}"))
            inner += [f"{element.replace(second, '0')} = {name}[{one}]"]
        else:
            inner += under(f"for {second} in T.serial({count}):", read)
        scope.buffers.append(tape)
        if scope.chance(0.3):
            return lines + under(f"for {outer} in T.serial(2):", inner)
        return lines + inner

    # --- blocks

    def nest(self, depth: int) -> Lines:
        """Loops around a block."""
        scope = self.scope
        with scope.inside():
            loops: list[tuple[str, str, str]] = []
            spans: list[str] = []
            for _ in range(scope.choose((1, 2, 2, 3))):
                name, bound = scope.fresh("i"), self.bound() if scope.chance(0.4) else self._few()
                spans.append(self.span(bound, 0.05))
                domain = bound if spans[-1] == bound else "T.int64(64)"
                loops.append((name, domain, scope.choose("SSR")))
                scope.vars.append(Variable(name, bound))
            body = self.block(loops)
            for (name, _, _), span in zip(reversed(loops), reversed(spans), strict=True):
                if scope.chance(0.1):
                    body = under(f"if {self.terms.condition(0)}:", body)
                if scope.chance(0.05):
                    body = self.store(depth) + body
                scope.vars.pop()
                body = under(f"for {name} in T.serial({span}):", body)
        return body

    def _few(self) -> str:
        return self.scope.choose(("n", "m", "T.int64(2)", "T.int64(4)", "T.int64(8)"))

    def block(self, loops: list[tuple[str, str, str]]) -> Lines:
        """A block with an iterator for each loop."""
        scope, terms = self.scope, self.terms
        outer = [*scope.vars]
        names = [f"v{name}" for name, _, _ in loops]
        lines = [self._iterator(f"v{name}", name, bound, kind) for name, bound, kind in loops]
        inner = [Variable(f"v{name}", bound) for name, bound, _ in loops]
        before, scope.in_block = scope.in_block, True
        scope.vars = (outer[: -len(loops)] if scope.chance(0.3) else []) + inner
        if scope.chance(0.4):
            lines.append(f"T.where({terms.condition()})")
        store, is_sum = self._stores(loops)
        if is_sum and scope.chance(0.65):
            lines += under("with T.init():", [store[0].replace("@", scope.choose(("0", "1")))])
        lines += store[1:]
        if scope.chance(0.3):
            lines += self.store(DEEPEST)
        scope.vars, scope.in_block = outer, before
        return under(f'with T.block("{scope.fresh("b")}"):', lines) if names else []

    def _iterator(self, name: str, loop_name: str, bound: str, kind: str) -> str:
        axis = "spatial" if kind == "S" else "reduce"
        if self.scope.chance(0.1):
            return f"{name} = T.axis.{axis}(T.int64(64), {loop_name} + {self.scope.choose((1, 2))})"
        if any(character in bound for character in "[+%(") and not bound.startswith("T.int64("):
            bound = "T.int64(16)"
        return f"{name} = T.axis.{axis}({bound}, {loop_name})"

    def _stores(self, loops: list[tuple[str, str, str]]) -> tuple[Lines, bool]:
        """An init (`@` stands for its value), a body, and whether the body accumulates."""
        scope, terms = self.scope, self.terms
        candidates = scope.writable("value") or scope.writable("cell")
        if not candidates:
            return ["", "T.evaluate(0)"], False
        buffer = scope.choose(candidates)
        spatial = [name for name, _, kind in loops if kind == "S"]
        if buffer.name in scope.shared:
            at = terms.at(buffer, 1, owned=True)
        elif scope.chance(0.6) and spatial and not buffer.is_sparse and len(buffer.sizes) == 1:
            at, other = f"v{scope.choose(spatial)}", f"v{scope.choose(spatial)}"
            if scope.chance(0.3):
                at = scope.choose((f"{at} // 2", f"T.min({at}, {other})", f"{at} * 0", "0"))
            elif scope.chance(0.35):
                candidates = scope.having("index") or scope.having("cell")
                at = terms.loaded(scope.choose(candidates), 0) if candidates else at
        else:
            with scope.inside():
                reductions = {f"v{name}" for name, _, kind in loops if kind == "R"}
                kept = [var for var in scope.vars if var.name not in reductions]
                scope.vars = kept
                at = terms.at(buffer, 1)
        element = f"{buffer.name}[{at}]"
        zero = "T.int64" if buffer.dtype == "int64" else f"T.{buffer.dtype}"
        value = terms.stored(buffer)
        if buffer.role == "value":
            value = terms.value(buffer.dtype, scope.choose((1, 1, 2)))
        is_sum = scope.chance(0.6)
        if is_sum:
            step = scope.choose(
                (f"{element} + {value}", f"T.max({element}, {value})", f"{element} - {value}")
            )
        else:
            step = value
        lines = [f"{element} = {step}"]
        if scope.chance(0.2):
            name, dtype = scope.fresh("v"), buffer.dtype
            lines = [f"{name}: T.{dtype} = {value}", f"{element} = {element} + {name}"]
        if scope.chance(0.15):
            lines = under(f"if {terms.condition()}:", lines)
        return [f"{element} = {zero}(@)", *lines], is_sum


def handed(bodies: Bodies, depth: int) -> Lines:
    """A block that fills a buffer and one that reads it, with or without a statement between them."""
    scope = bodies.scope
    between = bodies.body(DEEPEST, 1) if scope.chance(0.25) else []
    return draw_pair(scope, bodies.terms, between) or bodies.store(DEEPEST)


def combine(bodies: Bodies, depth: int) -> Lines:
    """Combines elements with values by a declared reducer."""
    return draw_combine(bodies.scope, bodies.terms) or bodies.store(depth)


def reduction(bodies: Bodies, depth: int) -> Lines:
    """A block that reduces by a declared reducer."""
    return draw_reduction(bodies.scope, bodies.terms) or bodies.store(depth)


def vector(bodies: Bodies, depth: int) -> Lines:
    """A store of a vector that is written in the script."""
    return draw_vector(bodies.scope, bodies.terms) or bodies.store(depth)


def far(bodies: Bodies, depth: int) -> Lines:
    """Lanes and iterations with extreme numbers."""
    return draw_far(bodies.scope, bodies.terms) or bodies.store(depth)


COMPARED = ("<", "<=", "!=")
IN_BLOCKS = {"nest": 40, "handed": 40, "store": 8, "loop": 8, "let": 4, "allocate": 4, "if": 4,
             "reduction": 6, "far": 6}  # fmt: skip
"""The weights of statements in a program of blocks."""
WEIGHTS = {
    "store": 20, "let": 8, "allocate": 8, "guard": 1, "prefetch": 1, "if": 8, "loop": 14,
    "while": 9, "nest": 13, "at_once": 5, "atomic": 1, "stale": 4, "handed": 4, "halves": 6,
    "tape": 3, "combine": 4, "reduction": 3, "vector": 2,
    "far": 6,
}  # fmt: skip
STMTS: dict[str, Callable[[Bodies, int], Lines]] = {
    "store": Bodies.store, "let": Bodies.let, "allocate": Bodies.allocate, "guard": Bodies.guard,
    "prefetch": Bodies.prefetch, "if": Bodies.branch, "loop": Bodies.loop,
    "while": Bodies.loop_while, "nest": Bodies.nest, "at_once": Bodies.at_once,
    "atomic": Bodies.atomic, "stale": Bodies.stale, "handed": handed,
    "halves": Bodies.halves, "tape": Bodies.tape, "combine": combine, "reduction": reduction,
    "vector": vector, "far": far,
}  # fmt: skip
"""The function that draws each kind of statement, and its weight."""
