"""Lists whose items declare their order: each names others that stand earlier or later, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def misplacements(
    name: str, listed: Sequence[str], *, after: Mapping[str, str], before: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield where a listed name stands and where it must, with the reason, for each other name that is on the
    wrong side of it. `after` and `before` have the reasons by the other names; those that are not listed do
    not matter.

    >>> [*misplacements("b", ["b", "a"], after={"a": "it needs an a"}, before={"c": "any"})]
    [("before 'a'", 'after it: it needs an a')]
    """
    place = listed.index(name)
    earlier, later = frozenset(listed[:place]), frozenset(listed[place + 1 :])
    for other, reason in after.items():
        if other in later:
            yield f"before '{other}'", f"after it: {reason}"
    for other, reason in before.items():
        if other in earlier:
            yield f"after '{other}'", f"before it: {reason}"
