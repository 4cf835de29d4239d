"""The check that passes are listed in an order in which they can run.

A pass declares the order itself, in its decorator: the stages that it takes and gives, the constructs that
earlier passes have removed, and in `after` and `before` the passes that must run earlier or later, each with
the reason. The list of passes has only their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import get_args

from gossamer_ir.errors import InternalError
from gossamer_ir.nodes import StageName
from gossamer_lower.lowering_pass import PassRecord, PipelineName
from gossamer_support.declared_order import misplacements


def require_order(records: Sequence[PassRecord]) -> None:
    """Raise `InternalError` for the first pass that is not at a place at which it can run.

    >>> from gossamer_lower.loops.peel_remainder import peel_remainder
    >>> from gossamer_lower.loops.unroll_loops import unroll_loops
    >>> from gossamer_lower.lowering_pass import record_of
    >>> require_order([record_of(unroll_loops), record_of(peel_remainder)])
    ... # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    gossamer_support.errors.InternalError: The pass 'peel_remainder' is listed after 'unroll_loops', but must
    run before it: it tests the bound of a loop that is not unrolled yet
    """
    for wrong in (
        *_wrong_neighbors(records),
        *_wrong_stages(records),
        *_contents_left(records),
        *_without_place(records),
    ):
        raise InternalError(wrong)


def _wrong_neighbors(records: Sequence[PassRecord]) -> Iterator[str]:
    names = [record.name for record in records]
    for record in records:
        for listed, needed in misplacements(
            record.name, names, after=record.after, before=record.before
        ):
            yield f"The pass '{record.name}' is listed {listed}, but must run {needed}"


def _without_place(records: Sequence[PassRecord]) -> Iterator[str]:
    """Yield what is wrong with passes of a pipeline whose place nothing bounds: neither a stage nor a
    construct nor another pass. Their author has not said where they belong."""
    named = {name for record in records for name in (*record.after, *record.before)}
    for record in records:
        is_bounded = record.after or record.before or record.removes or record.name in named
        if record.pipeline is not None and not is_bounded and record.gives in record.takes:
            yield (
                f"The pass '{record.name}' declares neither `after` nor `before`, so that it could be listed "
                "anywhere"
            )


def _wrong_stages(records: Sequence[PassRecord]) -> Iterator[str]:
    for name in get_args(PipelineName):
        stage: StageName | None = None
        for earlier, later in pairwise(record for record in records if record.pipeline == name):
            # A pass that takes several stages gives that of its argument.
            stage = earlier.gives or stage
            if stage not in later.takes:
                yield (
                    f"The pass '{later.name}' takes a module of the {' or '.join(later.takes)} stage, but "
                    f"'{earlier.name}', which is listed before it, gives one of the {stage} stage"
                )


def _contents_left(records: Sequence[PassRecord]) -> Iterator[str]:
    removed: set[str] = set()
    for record in records:
        for construct in record.without:
            if construct not in removed:
                yield (
                    f"The pass '{record.name}' takes a module without {construct}, but no pass that is "
                    "listed before it removes them"
                )
        removed.update(record.removes)
