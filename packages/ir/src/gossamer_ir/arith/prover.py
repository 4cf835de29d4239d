"""A small prover of integer-affine inequalities, for bounds and for legality.

A goal `g >= 0` is proved by finding non-negative multiples of known inequalities `h >= 0` that leave
a non-negative constant (Fourier-Motzkin elimination, one atom at a time, innermost atom first).
Knowledge about an atom is made when the atom is met: the facts of an index buffer, the bounds of a
quotient, remainder, minimum or maximum. Values are those of unbounded integers; whoever asks about
machine integers sees to it that they do not wrap. "Not proved" never means "false".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import permutations
from math import gcd
from typing import TypeGuard

from gossamer_ir.arith.affine import (
    Affine,
    affine_of,
    combine,
    distance,
    expr_of,
    factors_of,
    multiplier_of,
    product,
    scale,
    shared_factors,
)  # fmt: skip
from gossamer_ir.arith.constraints import Hypotheses
from gossamer_ir.arith.inequalities import as_nonnegative, connected, negated, widened
from gossamer_ir.arith.nonaffine_bounds import (
    Case,
    about_binary,
    about_storage,
    cases_of,
    left_by_quotient,
)
from gossamer_ir.arith.offsets import following, length_of, offset_of
from gossamer_ir.core import build
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import (
    Binary,
    Cast,
    Compare,
    Const,
    Expr,
    Fact,
    HasValue,
    IfThenElse,
    InRange,
    Load,
    Monotone,
    Node,
    PaddedSlots,
    ProductSteps,
    Relation,
    Search,
    SortedSegments,
    Unary,
    Var,
    VScale,
)  # fmt: skip
from gossamer_ir.traversal.walk import free_vars, walk

MAX_STEPS = 400
MAX_DEPTH = 9
MAX_NESTING = 6
ALTERNATIVES = 3
"""Atoms of a goal that are tried at the start of a proof."""
MAX_SEGMENTS = 6


_Question = tuple[int, int, frozenset[tuple[Expr, int]]]
"""What is known (`Hypotheses.state`), a number (of a goal its constant, within a proof how deep proofs
are nested), and the terms of the goal."""


class _Scope(AbstractContextManager[None]):
    """Goes back to what was known (a class, since proofs open many)."""

    def __init__(self, hypotheses: Hypotheses) -> None:
        self._hypotheses = hypotheses

    def __enter__(self) -> None:
        self._mark = self._hypotheses.mark()

    def __exit__(self, *raised: object) -> None:
        self._hypotheses.release(self._mark)


class _Facts:
    """Facts by what they are asked for."""

    def __init__(self, facts: tuple[Fact, ...]) -> None:
        self.ranges = {fact.buffer: fact for fact in facts if isinstance(fact, InRange)}
        self.monotone = {fact.buffer for fact in facts if isinstance(fact, Monotone)}
        self.values = [fact for fact in facts if isinstance(fact, HasValue)]
        self.products = {fact.buffer: fact for fact in facts if isinstance(fact, ProductSteps)}
        padded = {fact.buffer for fact in facts if isinstance(fact, PaddedSlots)}
        self.segments = [
            fact for fact in facts if isinstance(fact, SortedSegments) and fact.buffer not in padded
        ]
        self.cuts = {fact.buffer: fact.indptr for fact in self.segments}
        self.subsets = {
            (fact.left, fact.right)
            for fact in facts
            if isinstance(fact, Relation) and fact.kind == "subset"
        }


_by_kind = lru_cache(maxsize=64)(_Facts)
"""Many provers are made for the facts of one function."""


class Prover:
    """Inequalities that hold at a point of a program, and the facts about its index buffers."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._hypotheses = Hypotheses()
        known = _by_kind(tuple(facts))
        self._ranges, self._products = known.ranges, known.products
        self._monotone, self._values = known.monotone, known.values
        self._segments, self._cuts, self._subsets = known.segments, known.cuts, known.subsets
        self._steps = 0
        self._nesting = 0
        self._answers: dict[_Question, bool] = {}
        self._unproved: dict[_Question, tuple[int, int]] = {}

    @property
    def state(self) -> int:
        """A number that is equal where the same is assumed."""
        return self._hypotheses.state

    def scope(self) -> AbstractContextManager[None]:
        """What is assumed inside is forgotten behind it."""
        return _Scope(self._hypotheses)

    def assume_nonnegative(self, expr: Expr) -> None:
        """From here on, expr >= 0 holds."""
        self._hypotheses.add(affine_of(expr))

    def assume_range(self, var: str, start: Expr, extent: Expr) -> None:
        """From here on, start <= var < start + extent holds."""
        while isinstance(extent, IfThenElse) and build.integer_value(extent.if_false) == 0:
            self.assume(extent.condition)
            extent = extent.if_true
        variable = build.index_var(var)
        self.assume_nonnegative(Binary("sub", variable, start))
        last = Binary("sub", Binary("add", start, extent), build.ONE)
        self.assume_nonnegative(Binary("sub", last, variable))

    def assume(self, condition: Expr) -> None:
        """A condition holds; what is no comparison of integers is ignored."""
        self._begin()
        self._assume(condition)

    def _assume(self, condition: Expr) -> None:
        match connected(condition):
            case Binary(op="and") as found:
                self._assume(found.lhs)
                self._assume(found.rhs)
            case Unary(op="not", operand=Binary(op="or") as either):
                self._assume(Unary("not", either.lhs))
                self._assume(Unary("not", either.rhs))
            case Unary(op="not") as found:
                opposite = negated(found.operand)
                if opposite is not None:
                    self._assume(opposite)
            case Compare() as found:
                self._assume_comparison(found)

    def _assume_comparison(self, condition: Compare) -> None:
        sides = widened(condition)
        if sides is None:
            return
        match condition.op:
            case "eq":
                self.assume_nonnegative(Binary("sub", *sides))
                self.assume_nonnegative(Binary("sub", *reversed(sides)))
            case "ne":
                self._assume_apart(*sides)
            case op:
                self.assume_nonnegative(as_nonnegative(op, *sides))

    def _assume_apart(self, lhs: Expr, rhs: Expr) -> None:
        """Two values differ: one that is known to be no greater is less."""
        for low, high in ((lhs, rhs), (rhs, lhs)):
            apart = Binary("sub", high, low)
            if self._holds(apart):
                self.assume_nonnegative(Binary("sub", apart, build.ONE))
                return

    def proves_nonnegative(self, expr: Expr) -> bool:
        """Whether expr >= 0 is proved."""
        goal = affine_of(expr)
        question = self._hypotheses.state, goal.constant, frozenset(goal.terms.items())
        answer = self._answers.get(question)
        if answer is None:
            self._begin()
            answer = self._search(goal, MAX_DEPTH) or self._follows_at_once(goal)
            self._answers[question] = answer
        return answer

    def _follows_at_once(self, goal: Affine) -> bool:
        """Whether a goal is proved by an inequality that has several of its atoms, as the condition of a
        loop that was split more than once. The search goes atom by atom, and may use up its steps
        before it comes to that."""
        for known in {id(known): known for known in self._about_several(goal)}.values():
            atom = next(atom for atom in goal.terms if atom in known.terms)
            rest = _without(goal, atom, known)
            if rest is not None and len(rest.terms) <= len(goal.terms) - 2:
                self._begin()
                if self._search(rest, MAX_DEPTH):
                    return True
        return False

    def _about_several(self, goal: Affine) -> Iterator[Affine]:
        """What is assumed of three atoms of a goal or more."""
        for atom in goal.terms if len(goal.terms) > 2 else ():
            for known in self._hypotheses.about(atom):
                if len(known.terms.keys() & goal.terms.keys()) > 2:
                    yield known

    def _begin(self) -> None:
        self._steps = MAX_STEPS
        self._unproved.clear()

    def proves_in_range(self, expr: Expr, extent: Expr) -> bool:
        """Whether 0 <= expr < extent is proved."""
        upper = Binary("sub", Binary("sub", extent, expr), build.ONE)
        return self.proves_nonnegative(expr) and self.proves_nonnegative(upper)

    def proves(self, condition: Expr) -> bool:
        """Whether a comparison of integers, or a combination of such, is proved."""
        match connected(condition):
            case Const() as found:
                return found.text == "True"
            case Binary(op="and") as found:
                return self.proves(found.lhs) and self._proves_under(found.lhs, found.rhs)
            case Binary(op="or") as found:
                return self.proves(found.lhs) or self._proves_under(
                    Unary("not", found.lhs), found.rhs
                )
            case Unary(op="not") as found:
                opposite = negated(found.operand)
                return opposite is not None and self.proves(opposite)
            case Compare() as found:
                return self._proves_comparison(found)
        return False

    def _proves_under(self, known: Expr, condition: Expr) -> bool:
        with self.scope():
            self.assume(known)
            return self.proves(condition)

    def _proves_comparison(self, condition: Compare) -> bool:
        sides = widened(condition)
        if sides is None:
            return False
        lhs, rhs = sides
        match condition.op:
            case "eq":
                apart = Binary("sub", lhs, rhs)
                return self.proves_nonnegative(apart) and self.proves_nonnegative(
                    Binary("sub", rhs, lhs)
                )
            case "ne":
                less, greater = as_nonnegative("lt", lhs, rhs), as_nonnegative("gt", lhs, rhs)
                return self.proves_nonnegative(less) or self.proves_nonnegative(greater)
            case op:
                return self.proves_nonnegative(as_nonnegative(op, lhs, rhs))

    def _holds(self, expr: Expr) -> bool:
        """Whether expr >= 0 is proved within the steps of the proof that asks."""
        if self._nesting == MAX_NESTING:
            return False
        self._nesting += 1
        result = self._search(affine_of(expr), MAX_DEPTH)
        self._nesting -= 1
        return result

    def _search(self, goal: Affine, depth: int) -> bool:
        if goal.is_constant:
            return goal.constant >= 0
        if depth == 0 or self._steps <= 0:
            return False
        self._steps -= 1
        goal = _lowest(goal)
        if self._is_assumed(goal):
            return True
        question = self._hypotheses.state, self._nesting, frozenset(goal.terms.items())
        tried, constant = self._unproved.get(question, (0, 0))
        if tried >= depth and constant >= goal.constant:
            return False
        is_proved = self._tries(goal, depth)
        if not is_proved:
            self._unproved[question] = depth, goal.constant
        return is_proved

    def _is_assumed(self, goal: Affine) -> bool:
        """Whether a goal was assumed as it is, or what is less was; most questions are about the range of
        one loop."""
        known = self._hypotheses.about(next(iter(goal.terms)))
        return any(form.constant <= goal.constant and form.terms == goal.terms for form in known)

    def _tries(self, goal: Affine, depth: int) -> bool:
        atoms = list(goal.terms)
        if len(atoms) > 1:
            choices = ALTERNATIVES if depth > MAX_DEPTH - 2 else 1
            atoms = sorted(atoms, key=self._rank, reverse=True)[:choices]
        return any(self._eliminates(atom, goal, depth) for atom in atoms)

    def _eliminates(self, atom: Expr, goal: Affine, depth: int) -> bool:
        """Whether a goal is proved by what is known of one atom in it."""
        if type(atom) is Var:
            return self._follows(self._hypotheses.about(atom), goal, atom, depth)
        is_positive = goal.terms[atom] > 0
        if any(self._search(rest, depth - 1) for rest in self._without_factor(atom, goal)):
            return True
        if self._holds_in(cases_of(atom, is_least=is_positive), goal, atom, depth):
            return True
        if self._follows(self._knowledge(atom, goal), goal, atom, depth):
            return True
        if any(self._search(rest, depth - 1) for rest in self._multiplied_out(goal, atom)):
            return True
        sides = cases_of(atom, is_least=not is_positive) if isinstance(atom, Binary) else ()
        return self._holds_in(sides, goal, atom, depth)

    def _follows(self, found: Iterable[Affine], goal: Affine, atom: Expr, depth: int) -> bool:
        """Whether one of some inequalities leaves a goal without the atom that is proved."""
        for known in found:
            rest = _without(goal, atom, known)
            if rest is not None and self._search(rest, depth - 1):
                return True
        return False

    def _holds_in(self, cases: tuple[Case, ...], goal: Affine, atom: Expr, depth: int) -> bool:
        return bool(cases) and all(
            self._holds_where(condition, _with_value(goal, atom, value), depth - 1)
            for condition, value in cases
        )

    def _holds_where(self, condition: Expr, goal: Affine, depth: int) -> bool:
        with self.scope():
            self._assume(condition)
            return self._search(goal, depth)

    def _multiplied_out(self, goal: Affine, atom: Expr) -> Iterator[Affine]:
        """A goal times the positive divisor d of the quotient q = x // d in it: x - d < q * d <= x."""
        if not isinstance(atom, Binary) or atom.op != "floordiv" or _is_constant(atom.rhs):
            return
        if not self._holds(Binary("sub", atom.rhs, build.ONE)):
            return
        divisor = affine_of(atom.rhs)
        coefficient = goal.terms[atom]
        rest = product(_without_atom(goal, atom), divisor)
        if rest is not None:
            total = combine(rest, affine_of(atom.lhs), coefficient)
            slack = combine(divisor, Affine({}, -1), 1)
            yield combine(total, slack, 1 if coefficient < 0 else 1 - coefficient)

    def _rank(self, atom: Expr) -> tuple[int, bool, bool, bool]:
        """The atom bound last comes first, so that what it depends on is met afterwards; sizes come
        last. A load or a quotient comes before the variables in it, a remainder before its quotient,
        a sum of products before products.
        """
        inner = _unwidened(atom)
        is_sum = isinstance(inner, Load) and inner.buffer in self._products
        is_compound = not isinstance(atom, Var)
        is_remainder = isinstance(atom, Binary) and atom.op == "floormod"
        depth = max(map(self._hypotheses.depth_of, free_vars(atom)), default=0)
        return depth, is_sum, is_compound, is_remainder

    def _knowledge(self, atom: Expr, goal: Affine) -> Iterator[Affine]:
        yield from self._hypotheses.about(atom)
        inner = _unwidened(atom)
        if isinstance(inner, Load) and inner.predicate is None:
            yield from self._about_load(atom, inner, goal)
        elif isinstance(inner, VScale):
            yield Affine({atom: 1}, -1)
        elif isinstance(inner, Search) and self._is_hit(inner):
            yield affine_of(Binary("sub", atom, inner.begin))
        elif isinstance(inner, Binary) and inner is atom and inner.op == "mul":
            yield from self._about_product(inner, goal)
        elif isinstance(inner, Binary):
            yield from about_binary(atom, inner)
            if inner.op == "floormod" and not _is_constant(inner.rhs):
                yield from self._about_remainder(atom, inner)
        if inner is not atom:
            yield from about_storage(atom, build.dtype_of(inner))

    def _is_hit(self, search: Search) -> bool:
        """Whether an exact search looks for a value of a segment that is a subset of what it looks
        in: the segments of one number in two buffers."""
        value = _unwidened(search.value)
        if not isinstance(value, Load) or (value.buffer, search.buffer) not in self._subsets:
            return False
        if search.kind != "exact" or value.buffer not in self._cuts:
            return False
        number = self._segment_searched(search)
        indptr = self._cuts[value.buffer]
        if number is None or indptr is None:
            return number is not None and value.indices[:-1] == (number,)
        place = value.indices[-1]
        return any(
            _number_of(begin) == number
            and self._holds(Binary("sub", place, begin))
            and self._holds(Binary("sub", Binary("sub", end, place), build.ONE))
            for begin, end in self._segments_named(value, value, indptr)
        )

    def _segment_searched(self, search: Search) -> Expr | None:
        """The number of the segment that a search looks in all of; None where that is not known."""
        offset = offset_of(search.begin, search.end)
        if offset is None or offset.buffer != self._cuts.get(search.buffer):
            return None
        return offset.indices[0] if len(offset.indices) == 1 else None

    def _about_remainder(self, atom: Expr, inner: Binary) -> Iterator[Affine]:
        last = Binary("sub", inner.rhs, build.ONE)
        if self._holds(last):
            yield Affine({atom: 1}, 0)
            yield affine_of(Binary("sub", last, atom))
            yield from left_by_quotient(atom, inner)

    def _about_product(self, atom: Binary, goal: Affine) -> Iterator[Affine]:
        """What is known about a factor, times the others where these are not negative."""
        factors = factors_of(atom)
        signs = [self._holds(factor) for factor in factors]
        if all(signs):
            yield Affine({atom: 1}, 0)
        for at, factor in enumerate(factors):
            if not all(signs[:at] + signs[at + 1 :]):
                continue
            for known in self._knowledge(factor, goal):
                multiple: Affine | None = known
                for other in (*factors[:at], *factors[at + 1 :]):
                    multiple = multiple and product(multiple, affine_of(other))
                if multiple is not None:
                    yield multiple

    def _without_factor(self, atom: Expr, goal: Affine) -> Iterator[Affine]:
        """A goal without a factor of an atom that other terms have, too: what it is multiplied by has a
        sign, so that a bound of the factor bounds all of them at once."""
        for factor in sorted(shared_factors(atom, goal), key=self._rank, reverse=True):
            multiplier = multiplier_of(factor, goal)
            for sign in (1, -1):
                if not self._holds(expr_of(scale(multiplier, sign))):
                    continue
                for known in self._knowledge(factor, goal):
                    if known.terms.get(factor) == sign:
                        multiple = product(known, scale(multiplier, sign))
                        if multiple is not None:
                            yield combine(goal, multiple, -1)

    def _about_load(self, atom: Expr, load: Load, goal: Affine) -> Iterator[Affine]:
        yield from self._about_sum(load, goal)
        for other, neighbour in _loads_beside(load, goal):
            if load.buffer in self._monotone:
                yield from self._ordered(atom, load, other, neighbour)
            yield from self._in_one_segment((atom, load), (other, neighbour))
        for fact in self._values:
            if fact.buffer == load.buffer and _is_equal(fact.index, load.indices[-1]):
                yield affine_of(Binary("sub", atom, fact.value))
                yield affine_of(Binary("sub", fact.value, atom))
        found = self._ranges.get(load.buffer)
        if found is not None:
            yield affine_of(Binary("sub", atom, found.low))
            yield affine_of(Binary("sub", Binary("sub", found.high, build.ONE), atom))

    def _about_sum(self, load: Load, goal: Affine) -> Iterator[Affine]:
        """How an element leads to its neighbours by products of steps, where a goal speaks of both."""
        fact = self._products.get(load.buffer)
        if fact is None:
            return
        read = {node.buffer: node for atom in goal.terms for node in walk(atom) if _is_read(node)}
        if fact.left not in read or fact.right not in read:
            return
        at = load.indices[-1]
        for position in (at, expr_of(affine_of(build.sub(at, build.ONE)))):
            step, *steps = (
                _step(found, position) for found in (load, read[fact.left], read[fact.right])
            )
            total = product(*steps)
            if total is not None:
                rest = combine(step, total, -1)
                yield from (rest, scale(rest, -1))

    def _ordered(self, atom: Expr, load: Load, other: Expr, neighbour: Load) -> Iterator[Affine]:
        apart = Binary("sub", load.indices[-1], neighbour.indices[-1])
        if self._holds(apart):
            yield affine_of(Binary("sub", atom, other))
        if self._holds(Binary("sub", neighbour.indices[-1], load.indices[-1])):
            yield affine_of(Binary("sub", other, atom))

    def _in_one_segment(
        self, first: tuple[Expr, Load], second: tuple[Expr, Load]
    ) -> Iterator[Affine]:
        """Values of a segment rise with their positions, by as much where they are unique."""
        for fact in self._segments:
            if fact.buffer != first[1].buffer:
                continue
            for (low, start), (high, end) in ((first, second), (second, first)):
                apart = Binary("sub", end.indices[-1], start.indices[-1])
                if self._holds(apart) and self._is_one_segment(start, end, fact.indptr):
                    rise = affine_of(Binary("sub", high, low))
                    yield combine(rise, affine_of(apart), -1) if fact.unique else rise

    def _is_one_segment(self, start: Load, end: Load, indptr: str | None) -> bool:
        """Whether two loads with the same outer indices, the second not before the first, are of one
        segment."""
        if indptr is None:
            return True
        is_fibre = len(start.indices) > 1
        segments = self._fibre if is_fibre else self._segments_known
        for begin, stop in segments(start, end, indptr):
            behind = Binary("sub", Binary("sub", stop, end.indices[-1]), build.ONE)
            if self._holds(Binary("sub", start.indices[-1], begin)) and self._holds(behind):
                return True
        return False

    def _fibre(self, start: Load, end: Load, indptr: str) -> Iterator[tuple[Expr, Expr]]:
        """At the position stage, where positions are counted from the begin of a fibre: 0 and the number
        of elements of the fibre that the outer indices select."""
        named = (affine_of(start.indices[-1]), affine_of(end.indices[-1]), *self._hypotheses)
        nodes = (node for form in named for atom in form.terms for node in walk(atom))
        fibre = start.indices[:-1]
        for node in nodes:
            if not isinstance(node, Load) or (node.buffer, node.predicate) != (indptr, None):
                continue
            if node.indices == fibre:
                yield build.ZERO, length_of(node)
                return

    def _segments_known(self, start: Load, end: Load, indptr: str) -> Iterator[tuple[Expr, Expr]]:
        """Bounds of segments that are known as values, or that positions or hypotheses speak of."""
        values = [fact for fact in self._values if fact.buffer == indptr]
        for first, second in permutations(values, 2):
            if _is_equal(build.add(first.index, build.ONE), second.index):
                yield first.value, second.value
        yield from self._segments_named(start, end, indptr)

    def _segments_named(self, start: Load, end: Load, indptr: str) -> Iterator[tuple[Expr, Expr]]:
        """Bounds of the segments that positions or hypotheses speak of."""
        named = (affine_of(start.indices[-1]), affine_of(end.indices[-1]), *self._hypotheses)
        atoms = (atom for form in named for atom in form.terms)
        bounds = dict.fromkeys(
            node for atom in atoms for node in walk(atom) if _is_bound(node, indptr)
        )
        for bound in list(bounds)[:MAX_SEGMENTS]:
            yield build.widen(bound), build.widen(following(bound))


def _is_read(node: Node) -> TypeGuard[Load]:
    return isinstance(node, Load) and node.predicate is None and len(node.indices) == 1


def _is_bound(node: Node, indptr: str) -> TypeGuard[Load]:
    return _is_read(node) and node.buffer == indptr


def _step(load: Load, position: Expr) -> Affine:
    """What the values of a buffer grow by from a position to the next."""
    return affine_of(length_of(Load(load.buffer, (position,), load.dtype)))


def _number_of(begin: Expr) -> Expr | None:
    """The number of the segment that begins at an element of its indptr."""
    load = _unwidened(begin)
    return load.indices[0] if isinstance(load, Load) else None


def _loads_beside(load: Load, goal: Affine) -> Iterator[tuple[Expr, Load]]:
    """Other loads of the buffer in a goal that differ in the last index only."""
    for other in goal.terms:
        inner = _unwidened(other)
        if not isinstance(inner, Load) or inner == load or inner.predicate is not None:
            continue
        if inner.buffer == load.buffer and inner.indices[:-1] == load.indices[:-1]:
            yield other, inner


def _unwidened(atom: Expr) -> Expr:
    """What an atom is the int64 of, where that has the same value."""
    if not isinstance(atom, Cast) or atom.dtype != "int64":
        return atom
    kind = DType.parse(build.dtype_of(atom.value))
    is_same = kind.kind in ("int", "bool") or (kind.kind == "uint" and kind.bits < 64)
    return atom.value if is_same and not kind.is_vector else atom


def _without(goal: Affine, atom: Expr, known: Affine) -> Affine | None:
    """What is left to prove of a goal, without the atom, by a multiple of a known inequality."""
    other, coefficient = known.terms.get(atom, 0), goal.terms[atom]
    if other * coefficient <= 0:
        return None
    divisor = gcd(other, coefficient)
    scaled = _scaled_goal(goal, abs(other) // divisor)
    return combine(scaled, known, -(abs(coefficient) // divisor))


def _lowest(goal: Affine) -> Affine:
    """A goal divided by what divides all its coefficients; the constant is rounded down."""
    divisor = gcd(*goal.terms.values())
    if divisor == 1:
        return goal
    terms = {atom: coefficient // divisor for atom, coefficient in goal.terms.items()}
    return Affine(terms, goal.constant // divisor)


def _without_atom(goal: Affine, atom: Expr) -> Affine:
    return Affine({term: c for term, c in goal.terms.items() if term != atom}, goal.constant)


def _with_value(goal: Affine, atom: Expr, value: Expr) -> Affine:
    return combine(_without_atom(goal, atom), affine_of(value), goal.terms[atom])


def _scaled_goal(goal: Affine, factor: int) -> Affine:
    """A goal times a factor: of integers, g >= 0 follows from factor * g >= 1 - factor."""
    scaled = scale(goal, factor)
    return Affine(scaled.terms, scaled.constant + factor - 1)


def _is_equal(lhs: Expr, rhs: Expr) -> bool:
    return distance(lhs, rhs) == 0


def _is_constant(expr: Expr) -> bool:
    return affine_of(expr).is_constant


__all__ = ["Prover"]
