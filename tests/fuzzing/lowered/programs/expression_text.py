"""Random expressions as text: integers for indices, bounds and conditions, and values."""

from __future__ import annotations

from tests.fuzzing.lowered.programs.scope import EXTREMES, Drawn, Scope

DIVISORS = ("T.int64(8)", "T.int64(3)", "T.int64(7)", "T.int64(-3)", "m")
COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")


class Terms:
    """Draws expressions of the names in a scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    # --- integers

    def integer(self, depth: int = 1) -> str:
        """An int64, usually small."""
        scope = self.scope
        if scope.chance(scope.wild):
            return self.wild(depth)
        if depth <= 0 or scope.chance(0.35):
            return self.leaf()
        return self.composed(depth)

    def leaf(self) -> str:
        scope = self.scope
        if scope.vars and scope.chance(0.55):
            return scope.choose(scope.vars[-4:]).name
        candidates = scope.having("index", "cell", "known")
        if candidates and scope.chance(0.6):
            return self.loaded(scope.choose(candidates), 0)
        if scope.chance(0.25) and scope.scalars:
            return scope.choose(scope.scalars)
        return self.number(0, 5)

    def number(self, low: int, high: int) -> str:
        return f"T.int64({self.scope.rng.randint(low, high)})"

    def composed(self, depth: int) -> str:
        scope = self.scope
        first, second = self.integer(depth - 1), self.integer(depth - 1)
        kind = scope.weighted({
            "sum": 5, "difference": 3, "product": 2, "quotient": 2, "rest": 3, "least": 2,
            "most": 1, "choice": 1, "select": 1, "load": 5, "search": 3, "bits": 1, "shift": 1,
        })  # fmt: skip
        few = self.number(1, 4)
        match kind:
            case "sum":
                return f"({first} + {scope.choose((second, few))})"
            case "difference":
                return f"({first} - {scope.choose((second, few))})"
            case "product":
                return f"({first} * {few})"
            case "quotient":
                return f"({first} // {scope.choose((few, few, *DIVISORS, second))})"
            case "rest":
                return f"({first} % {scope.choose((few, *DIVISORS, second))})"
            case "least" | "most":
                return f"T.{'min' if kind == 'least' else 'max'}({first}, {second})"
            case "choice":
                return f"T.if_then_else({self.condition(depth - 1)}, {first}, {second})"
            case "select":
                return f"T.Select({self.condition(depth - 1)}, {first}, {second})"
            case "search":
                return self.search(depth)
            case "bits":
                return f"({first} {scope.choose('&|^')} {few})"
            case "shift":
                return f"({first} {scope.choose(('>>', '<<'))} {self.number(0, 2)})"
        candidates = scope.having("index", "cell", "known", "indices")
        return self.loaded(scope.choose(candidates), depth - 1) if candidates else first

    def wild(self, depth: int) -> str:
        """An int64 that may be extreme."""
        scope = self.scope
        number = f"T.int64({scope.choose(EXTREMES)})"
        candidates = scope.having("extreme")
        kind = scope.choose(("number", "product", "sum", "load", "back", "scalar", "wrap", "wrap"))
        if kind == "wrap":
            return self.wrapped()
        if kind == "product":
            return f"({self.leaf()} * {number})"
        if kind == "sum":
            return f"({self.integer(depth - 1)} + {number})"
        if kind == "load" and candidates:
            return self.loaded(scope.choose(candidates), depth - 1)
        if kind == "back" and candidates:
            load = self.loaded(scope.choose(candidates), 0)
            return f"({load} {scope.choose(('+', '-', '*'))} {number})"
        return "s" if kind == "scalar" and "s" in scope.scalars else number

    def wrapped(self) -> str:
        """A small number, computed by arithmetic that wraps around."""
        scope, leaf = self.scope, self.leaf()
        return scope.choose((
            f"({leaf} * T.int64({2**62}) * 4 + {self.number(0, 3)})",
            f"(({leaf} + T.int64({2**63 - 1})) - T.int64({2**63 - 1}))",
            f"({leaf} * T.int64({2**62}) - {leaf} * T.int64({2**62}))",
            f"(({leaf} - T.int64({2**62})) + T.int64({2**62}))",
            f"({leaf} * T.int64({2**61}) * 8)", f"({leaf} * T.int64({2**32}) // T.int64({2**32}))",
            f"({leaf} + T.int64({-2**63}) + T.int64({-2**63}))",
        ))  # fmt: skip

    def search(self, depth: int) -> str:
        """A search whose end lies within the buffer."""
        scope = self.scope
        candidates = [
            item
            for item in scope.having("sorted", "index", "known", "offsets")
            if not item.is_sparse
        ]
        if scope.stage == "flat" or not candidates:
            return self.leaf()
        buffer = scope.choose([item for item in candidates if item.role == "sorted"] or candidates)
        if scope.chance(0.4):
            buffer = scope.choose(candidates)
        size = buffer.sizes[0]
        end = scope.choose((size, size, f"T.min({self.integer(0)}, {size})"))
        begin = scope.choose(("T.int64(0)", "T.int64(0)", f"T.max({self.leaf()}, T.int64(0))"))
        if buffer.role != "sorted":
            begin = self.index(size, 0)
            end = f"{begin} + {scope.choose((0, 1, 1, 1, 2))}"
        kind, value = scope.choose(("lower", "upper", "exact")), self.integer(depth - 1)
        return f'T.search("{kind}", {buffer.name}, begin={begin}, end={end}, value={value})'

    def loaded(self, buffer: Drawn, depth: int) -> str:
        """An element as an int64."""
        load = f"{buffer.name}[{self.at(buffer, depth)}]"
        return load if buffer.dtype == "int64" else f"T.int64({load})"

    # --- indices

    def at(self, buffer: Drawn, depth: int, *, owned: bool = False) -> str:
        """The indices of an element."""
        indices: list[str] = []
        for size in buffer.sizes:
            bound = size.format(*indices)
            if owned and not indices and self.scope.own is not None:
                indices.append(self.scope.own)
            else:
                indices.append(self.index(bound, depth))
        return ", ".join(indices)

    def index(self, size: str, depth: int) -> str:
        """An index, usually of an existing element."""
        scope = self.scope
        fitting = [var.name for var in scope.vars if var.below == size]
        if fitting and scope.chance(0.6):
            return scope.choose(fitting[-3:])
        if scope.chance(scope.careless):
            far, near = scope.having("extreme"), scope.having("cell", "index")
            if far and scope.chance(0.3):
                return self.loaded(scope.choose(far), 0)
            is_loaded = near and depth > 0 and scope.chance(0.6)
            return self.loaded(scope.choose(near), 0) if is_loaded else self.integer(depth)
        if scope.chance(2 * scope.wild):
            return self.wrapped()
        kind = scope.weighted({"rest": 5, "clamped": 2, "raw": 3, "number": 2, "chosen": 1})
        if kind == "rest" or depth <= 0:
            return f"{self.leaf() if depth <= 0 else self.integer(depth - 1)} % {size}"
        if kind == "clamped":
            return f"T.min(T.max({self.integer(depth - 1)}, T.int64(0)), {size} - 1)"
        if kind == "number":
            return self.number(0, 1)
        candidates = scope.having("index", "known")
        if kind == "raw" and candidates and size in ("8", "T.int64(8)"):
            return self.loaded(scope.choose(candidates), 0)
        value = self.integer(depth - 1)
        return f"T.if_then_else(0 <= {value} and {value} < {size}, {value}, T.int64(0))"

    # --- conditions

    def condition(self, depth: int = 1) -> str:
        scope = self.scope
        if depth > 0 and scope.chance(0.2):
            both = scope.choose(("and", "or"))
            return f"({self.condition(depth - 1)} {both} {self.condition(depth - 1)})"
        if scope.chance(0.08):
            return f"(not {self.condition(0)})"
        if scope.chance(0.15):
            values = scope.having("value", "input")
            if values:
                buffer = scope.choose(values)
                zero = "0" if buffer.is_integer else "0.0"
                load = f"{buffer.name}[{self.at(buffer, 0)}]"
                return f"{load} {scope.choose(COMPARISONS)} {zero}"
        if scope.vars and scope.chance(0.3):
            loop = scope.choose(scope.vars).name
            return f"{loop} {scope.choose(COMPARISONS)} {self.number(0, 3)}"
        return f"{self.integer(depth)} {scope.choose(COMPARISONS)} {self.integer(depth)}"

    # --- values

    def value(self, dtype: str, depth: int = 1) -> str:
        """A value of a dtype of a buffer."""
        scope = self.scope
        if depth <= 0 or scope.chance(0.3):
            return self.value_leaf(dtype)
        first, second = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
        kind = scope.weighted(
            {"+": 5, "-": 3, "*": 3, "min": 2, "max": 2, "choice": 2, "select": 1}
        )
        if kind in ("min", "max"):
            return f"T.{kind}({first}, {second})"
        if kind == "choice":
            return f"T.if_then_else({self.condition(0)}, {first}, {second})"
        if kind == "select":
            return f"T.Select({self.condition(0)}, {first}, {second})"
        return f"({first} {kind} {second})"

    def value_leaf(self, dtype: str) -> str:
        scope = self.scope
        named = [name for name, kind in scope.floats if kind == dtype]
        if named and scope.chance(0.25):
            return scope.choose(named)
        candidates = scope.having("value", "input", dtype=dtype)
        if candidates and scope.chance(0.7):
            buffer = scope.choose(candidates)
            return f"{buffer.name}[{self.at(buffer, 1)}]"
        if scope.chance(0.4):
            return f"T.{dtype}({self.integer(0)} % T.int64(8))"
        number = scope.rng.randint(-3, 3)
        return f"T.{dtype}({number if 'int' in dtype else float(number)})"

    def stored(self, buffer: Drawn) -> str:
        """A value that may be stored to a buffer of that role."""
        scope = self.scope
        if buffer.role == "index":
            value = scope.choose(
                (f"{self.integer(1)} % T.int64(8)", self.number(0, 7), self.leaf())
            )
        elif buffer.role == "cell":
            value = scope.choose(
                (self.number(0, 4), self.leaf(), f"{self.integer(1)} % T.int64(6)")
            )
        elif buffer.role == "extreme":
            value = scope.choose((self.wild(1), self.integer(1)))
        else:
            return self.value(buffer.dtype)
        return value if buffer.dtype == "int64" else f"T.{buffer.dtype}({value})"
