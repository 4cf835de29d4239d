"""The constraints of a proof, indexed by atom, so that a step of elimination visits only relevant ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, TypeAlias

from gossamer_ir.arith.affine import Affine, factors_of
from gossamer_ir.nodes import Expr, Fact, Var, VScale
from gossamer_support.bounded_dict import put_bounded

VSCALE = VScale()

MAX_STATES = 8192
"""The number of states that are kept. One that was dropped gets another number when it comes again."""

_State: TypeAlias = tuple[Any, ...]
"""The number of the state before, and the constraint that was added."""

_numbers: dict[_State, int] = {}
_unused = count()


class Constraints:
    """A stack of forms that are assumed to be >= 0, in the order in which they were added.

    >>> from gossamer_ir.core.build import index_var
    >>> i, n = index_var("i"), index_var("n")
    >>> known = Constraints()
    >>> known.add(Affine({n: 1, i: -1}, -1))
    >>> [form.constant for form in known.about(i)], known.depth_of("i"), known.depth_of("n")
    ([-1], 1, 0)
    >>> known.release(0)
    >>> list(known.about(i))
    []
    """

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        """Create an empty stack; the facts are part of its state."""
        self._forms: list[Affine] = []
        self._states = [_number_of((*facts,))]
        self._additions = [0]
        self._added = 0
        self._about: defaultdict[Expr, list[Affine]] = defaultdict(list)
        self._bounds: defaultdict[str, list[int]] = defaultdict(list)
        self._bounded: list[list[str]] = []

    def __iter__(self) -> Iterator[Affine]:
        return iter(self._forms)

    def add(self, form: Affine) -> None:
        """Assume form >= 0 from here on."""
        self._forms.append(form)
        self._added += 1
        self._additions.append(self._added)
        # In this order: the search for a proof takes the atoms in theirs.
        self._states.append(_number_of((self._states[-1], form.constant, *form.terms.items())))
        for atom in form.terms:
            self._about[atom].append(form)
        bounded = _vars_bounded_above(form)
        self._bounded.append(bounded)
        for name in bounded:
            self._bounds[name].append(len(self._forms))

    @property
    def state(self) -> int:
        """A number that identifies the facts and the current constraints: equal numbers mean the same ones,
        added in the same order, in all stacks of this process.

        >>> n = Affine({Var("n", "int64"): 1}, 0)
        >>> one, other = Constraints(), Constraints()
        >>> one.add(n)
        >>> one.state == other.state
        False
        >>> other.add(n)
        >>> one.state == other.state
        True
        """
        return self._states[-1]

    @property
    def addition(self) -> int:
        """The number of the addition after which this stack has been as it is now; a constraint that is added
        again has another one."""
        return self._additions[-1]

    def mark(self) -> int:
        """Return the number of constraints, to be passed to `release`."""
        return len(self._forms)

    def release(self, mark: int) -> None:
        """Remove the constraints that were added after the mark."""
        while len(self._forms) > mark:
            form = self._forms.pop()
            self._states.pop()
            self._additions.pop()
            for atom in form.terms:
                self._about[atom].pop()
            for name in self._bounded.pop():
                self._bounds[name].pop()

    def about(self, atom: Expr) -> Iterator[Affine]:
        """Return the constraints that contain an atom, most recent first."""
        return reversed(self._about[atom])

    def constant_bound(self, atom: Expr, *, is_lower: bool) -> int | None:
        """Return the tightest constant bound of an atom, the lower or the upper one; None if there is none.

        >>> from gossamer_ir.core.build import index_var
        >>> i, n = index_var("i"), index_var("n")
        >>> known = Constraints()
        >>> known.add(Affine({i: -2}, 15))  # 2 * i <= 15
        >>> known.add(Affine({n: 1, i: -1}, -1))
        >>> known.constant_bound(i, is_lower=False), known.constant_bound(i, is_lower=True)
        (7, None)
        """
        bounds = [
            -(form.constant // form.terms[atom]) if is_lower else form.constant // -form.terms[atom]
            for form in self._about[atom]
            if len(form.terms) == 1 and (form.terms[atom] > 0) == is_lower
        ]
        return (max if is_lower else min)(bounds, default=None)

    def range_bound(self, atom: Expr, *, is_lower: bool) -> Affine | None:
        """Return a bound of an atom, the lower or the upper one, as a constant and a multiple of vscale;
        None if there is none.

        >>> from gossamer_ir.core.build import index_var, mul
        >>> lane, vector = index_var("lane"), index_var("vector")
        >>> known = Constraints()
        >>> known.add(Affine({VSCALE: 4, lane: -1}, -1))  # lane < 4 * vscale
        >>> known.range_bound(lane, is_lower=False) == Affine({VSCALE: 4}, -1)
        True
        >>> known.add(Affine({vector: -1}, 7))
        >>> known.range_bound(mul(VSCALE, vector), is_lower=False) == Affine({VSCALE: 7}, 0)
        True
        """
        if atom == VSCALE:
            return Affine({atom: 1}, 0)
        constant = self.constant_bound(atom, is_lower=is_lower)
        if constant is not None:
            return Affine({}, constant)
        factors = factors_of(atom)
        others = [factor for factor in factors if factor != VSCALE]
        if len(factors) == 2 and len(others) == 1:
            constant = self.constant_bound(others[0], is_lower=is_lower)
            # Times vscale, which is positive, a lower bound stays a lower one.
            return None if constant is None else Affine({VSCALE: constant} if constant else {}, 0)
        sign = 1 if is_lower else -1
        for form in self._about[atom]:
            if form.terms.keys() == {atom, VSCALE} and form.terms[atom] == sign:
                return Affine({VSCALE: -sign * form.terms[VSCALE]}, -sign * form.constant)
        return None

    def depth_of(self, name: str) -> int:
        """Return the number of the constraint that last bounded a variable from above, from 1; 0 if there is
        none, as for sizes."""
        bounds = self._bounds[name]
        return bounds[-1] if bounds else 0


def _number_of(state: _State) -> int:
    number = _numbers.get(state)
    if number is None:
        # Never used again: answers that were cached under it stay valid.
        number = next(_unused)
        put_bounded(_numbers, state, number, limit=MAX_STATES)
    return number


def _vars_bounded_above(form: Affine) -> list[str]:
    """Return the variables that form >= 0 bounds from above."""
    return [
        atom.name
        for atom, coefficient in form.terms.items()
        if coefficient < 0 and isinstance(atom, Var) and atom.dtype == "int64"
    ]
