"""Loops and lanes with extreme bounds: they start at values, or are compared with values, that wrap around,
and still store in bounds.
"""

from __future__ import annotations

from tests.fuzzing.lowered.programs.expression_text import COMPARISONS, Terms
from tests.fuzzing.lowered.programs.lines import Lines, under
from tests.fuzzing.lowered.programs.scope import EXTREMES, Drawn, Scope

ENDS = (2**63 - 1, 2**63 - 2, 2**63 - 4, 2**63 - 7)
"""Start values for which some of eight lanes wrap around."""
MULTIPLES = {(2**64 + 2) // 3: 3, (2**64 + 4) // 5: 5, 2**62: 4, -(2**63): 2}
"""Scalars with a small multiple: it wraps around to 2, 4, 0 and 0."""


def draw_far(scope: Scope, terms: Terms) -> Lines:
    """A loop over the last dimension of a buffer; nothing if no buffer may be stored to."""
    bounds = [
        item
        for item in scope.writable("value")
        if not item.is_sparse and item.name not in scope.shared
    ]
    if not bounds:
        return []
    far = _Far(scope, terms, scope.choose(bounds))
    return scope.choose((far.compared, far.compared, far.begun, far.block, far.lanes, far.often))()


class _Far:
    """Draws statements that store to a buffer."""

    def __init__(self, scope: Scope, terms: Terms, buffer: Drawn) -> None:
        self.scope, self.terms, self.buffer = scope, terms, buffer
        self.var, self.size = scope.fresh("i"), buffer.sizes[-1]
        self.above = "".join(f"{terms.index(size, 0)}, " for size in buffer.sizes[:-1])

    def compared(self) -> Lines:
        """Iterations, which may be vectorized, that run if an extreme number is below a bound."""
        if self.scope.chance(0.3):
            return self._groups()
        body = under(f"if {self.condition(self.var)}:", [self.store(self.var)])
        if self.scope.chance(0.3):
            body += under("else:", [self.store(self.var)])
        kind = self.kind()
        return under(f"for {self.var} in T.{kind}({self.count(kind)}):", body)

    def _groups(self) -> Lines:
        outer = self.scope.fresh("i")
        at = f"{outer} * 4 + {self.var}"
        body = under(f"if {self.condition(at)}:", [self.store(at)])
        inner = under(f"for {self.var} in T.{self.kind()}(T.int64(4)):", body)
        return under(f"for {outer} in T.serial({self.scope.choose(('T.int64(2)', 'm'))}):", inner)

    def begun(self) -> Lines:
        """A loop that starts at an extreme number."""
        start = self.extreme()
        body = [self.store(f"{self.var} - {start}")]
        if self.scope.chance(0.5):
            body = under(f"if {self.condition(self.var)}:", body)
        kind = self.kind()
        span = f"{start}, {start} + {self.count(kind)}"
        return under(f"for {self.var} in T.{kind}({span}):", body)

    def block(self) -> Lines:
        """A block that schedules may vectorize."""
        if self.scope.in_block or self.scope.stage == "flat":
            return self.compared()
        var = f"v{self.var}"
        lines = [f"{var} = T.axis.spatial({self.count()}, {self.var})"]
        lines += [f"T.where({self.condition(var)})", self.store(var)]
        body = under(f'with T.block("{self.scope.fresh("b")}"):', lines)
        return under(f"for {self.var} in T.serial({self.count()}):", body)

    def lanes(self) -> Lines:
        """Lanes that are written in the script, with a mask by an extreme number for each."""
        if self.scope.stage != "loop":
            return self.compared()
        count = self.scope.choose((2, 4))
        ramp = f"T.ramp({self.extreme()}, {self.scope.choose((1, 1, 2, -1))}, {count})"
        limit = f"T.broadcast({self.limit()}, {count})"
        condition = f"{ramp} {self.scope.choose(COMPARISONS)} {limit}"
        element = f"{self.buffer.name}[{self.above}T.ramp(T.int64(0), 1, {count})]"
        one = f"T.broadcast({self.terms.value_leaf(self.buffer.dtype)}, {count})"
        return [f"{element} = T.Select({condition}, {one}, {element})"]

    def often(self) -> Lines:
        """A loop whose extent is a product that may wrap around."""
        factor = self.scope.choose((2, 3, 4, 5))
        extent = self.scope.choose((f"s * {factor}", f"T.min(s * {factor}, {self.count()})"))
        body = [self.store(f"{self.var} % {self.size}")]
        return under(f"for {self.var} in T.serial({extent}):", body)

    def kind(self) -> str:
        if self.scope.stage == "flat" or self.scope.own is not None or self.scope.in_block:
            return "serial"
        return self.scope.choose(("serial", "vectorized", "vectorized"))

    def count(self, kind: str = "serial") -> str:
        """The number of iterations; for lanes a constant, which may exceed the number of elements."""
        if kind == "vectorized" and not self.size.startswith("T.int64("):
            return self.scope.choose(("T.int64(2)", "T.int64(4)"))
        return self.size

    def store(self, at: str) -> str:
        """Stores an invariant value to the element of the iteration, or accumulates it."""
        element = f"{self.buffer.name}[{self.above}{at}]"
        inputs = [
            f"{item.name}[{at}]"
            for item in self.scope.having("input", dtype=self.buffer.dtype)
            if not item.is_sparse and len(item.sizes) == 1
        ]
        zero = 0.0 if "float" in self.buffer.dtype else 0
        number = f"T.{self.buffer.dtype}({self.scope.rng.randint(-3, 3) + zero})"
        value = self.scope.choose([number, *inputs])
        return f"{element} = {self.scope.choose((value, f'{element} + {value}'))}"

    def condition(self, var_name: str) -> str:
        far, offset = self.extreme(), self.scope.choose(("1", "2", "8"))
        sums = (f"{var_name} + {far}", f"{far} + {var_name}")
        others = (
            f"{far} - ({var_name})", f"{var_name} - {far}", f"{var_name} - T.int64({offset})",
            f"({var_name}) * {far}", f"({var_name}) * {offset} + {far}", f"({var_name} + {far}) * {offset}",
        )  # fmt: skip
        left = self.scope.choose(self.scope.choose((sums, others)))
        compared = self.scope.choose((*["<"] * 6, *COMPARISONS))
        return f"{left} {compared} {self.limit()}"

    def limit(self) -> str:
        return self.scope.choose((
            "n", "m", "n - 5", self.terms.number(0, 8), "T.int64(100)", self.extreme(),
            f"{self.extreme()} + {self.terms.number(1, 4)}",
        ))  # fmt: skip

    def extreme(self) -> str:
        """A scalar, number or element that is mostly extreme."""
        candidates = self.scope.having("extreme")
        elements = [f"{item.name}[{self.scope.rng.randrange(4)}]" for item in candidates]
        number = f"T.int64({self.scope.choose(self.scope.choose((EXTREMES, ENDS)))})"
        return self.scope.choose(("s", "s", number, *elements))
