"""Affine forms as linear forms in loop variables: the coefficient of each variable, and the rest."""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec

from gossamer_ir.analysis.accesses.init_nests import ValuesOfVars
from gossamer_ir.arith.affine import (
    ONE_FORM,
    ZERO_FORM,
    Affine,
    affine_of,
    combine,
    expr_of,
    factors_of,
    scale,
)
from gossamer_ir.arith.inequalities import slack_of
from gossamer_ir.core.build import index_var, product
from gossamer_ir.nodes import Expr, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve


class LinearForm(msgspec.Struct, frozen=True, gc=False):
    """`sum(coefficient * variable) + base`. Coefficients depend on none of the variables; `opaque` are the
    variables on which atoms of the base depend, so that the form is not linear in them."""

    terms: dict[str, Affine]
    base: Affine
    opaque: frozenset[str]


def by_vars(form: Affine, names: Container[str]) -> LinearForm:
    """Return an affine form as a linear form in some variables.

    >>> from gossamer_ir.core.build import add, index_var, mul
    >>> from gossamer_ir.arith.affine import expr_of
    >>> i, j, n = map(index_var, "ijn")
    >>> form = by_vars(affine_of(add(mul(i, n), add(mul(j, j), n))), {"i", "j"})
    >>> {name: expr_of(step) == n for name, step in form.terms.items()}
    {'i': True}
    >>> expr_of(form.base) == add(mul(j, j), n), sorted(form.opaque)
    (True, ['j'])
    """
    terms: dict[str, Affine] = {}
    base: dict[Expr, int] = {}
    opaque: list[str] = []
    for atom, count in form.terms.items():
        if type(atom) is Var and atom.name in names and atom.name not in terms:
            terms[atom.name] = Affine({}, count)
            continue
        atom_vars = [name for name in free_vars(atom) if name in names]
        step = _multiplier(atom, atom_vars[0]) if len(atom_vars) == 1 else None
        if step is None:
            base[atom] = count
            opaque += atom_vars
        else:
            terms[atom_vars[0]] = combine(terms.get(atom_vars[0], ZERO_FORM), step, count)
    return LinearForm(terms, Affine(base, form.constant), frozenset(opaque))


def _multiplier(atom: Expr, name: str) -> Affine | None:
    """Return an atom divided by a variable; None if that is not a factor, or the quotient depends on it."""
    factors, var = list(factors_of(atom)), index_var(name)
    if var not in factors:
        return None
    factors.remove(var)
    return None if factors and name in free_vars(*factors) else affine_of(product(factors))


def form_of(expr: Expr, values: ValuesOfVars, *, loops: Container[str]) -> LinearForm:
    """Return an int64 expression as a linear form in loop variables, with other variables replaced by
    `values`."""
    return by_vars(affine_of(resolve(expr, values)), loops)


def coefficient_and_rest(form: Affine, name: str) -> tuple[Affine, Affine] | None:
    """Return the coefficient of a variable and the rest of a form, neither of which depends on the variable;
    None if the form is not linear in it.

    >>> from gossamer_ir.arith.affine import expr_of
    >>> from gossamer_ir.core.build import add, index_var, mul
    >>> i, m, n = map(index_var, "imn")
    >>> [expr_of(part) for part in coefficient_and_rest(affine_of(add(mul(i, m), n)), "i")] == [m, n]
    True
    >>> coefficient_and_rest(affine_of(mul(i, i)), "i")
    """
    split = by_vars(form, (name,))
    return None if split.opaque else (split.terms.get(name, ZERO_FORM), split.base)


def slack_along(condition: Expr, name: str) -> tuple[Affine, Affine] | None:
    """Return the coefficient of a variable in the slack of a condition, and the rest of the slack; None if
    the condition has no slack (`slack_of`), or one that is not linear in the variable.

    >>> from gossamer_ir.arith.affine import expr_of
    >>> from gossamer_ir.core.build import ONE, index_var, sub
    >>> from gossamer_ir.nodes import Compare
    >>> i, n = map(index_var, "in")
    >>> step, rest = slack_along(Compare("lt", i, n), "i")
    >>> step.constant, expr_of(rest) == sub(n, ONE)
    (-1, True)
    """
    slack = slack_of(condition)
    return None if slack is None else coefficient_and_rest(slack, name)


def bound_of_position(condition: Expr, coefficients: Mapping[str, Affine]) -> Expr | None:
    """Return the bound if a condition on int64 values is equivalent to `position < bound`; else None.

    The position is the sum of the variables, each times its coefficient. The bound has none of them. As for
    `slack_of`, nothing may wrap.

    >>> from gossamer_ir.core.build import add, index, index_var, mul
    >>> from gossamer_ir.nodes import Compare
    >>> group, lane, n = index_var("group"), index_var("lane"), index_var("n")
    >>> condition = Compare("lt", add(mul(group, index(8)), lane), n)
    >>> bound_of_position(condition, {"group": Affine({}, 8), "lane": ONE_FORM}) == n
    True
    >>> bound_of_position(condition, {"group": Affine({}, 4), "lane": ONE_FORM}) is None
    True
    """
    slack = slack_of(condition)
    if slack is None:
        return None
    form = by_vars(slack, coefficients)
    is_bound = not form.opaque and form.terms == {
        name: scale(coefficient, -1) for name, coefficient in coefficients.items()
    }
    return expr_of(form.base + ONE_FORM) if is_bound else None
