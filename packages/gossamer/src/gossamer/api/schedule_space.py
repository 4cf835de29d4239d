"""`schedule_space`: all schedules that the rules for a target have for a program."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.api.compile import ProgramSource
from gossamer.api.explain import program_of
from gossamer.compilation.pipeline import space_for_target
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import resolve_elsewhere
from gossamer_ir.interchange.records import ScheduleSpace, Stats, Target


def schedule_space(
    program: ProgramSource,
    *,
    target: str | Target = DEFAULT_TARGET,
    stats: Stats | None = None,
    specialize: Mapping[str, int] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> ScheduleSpace:
    """Return the schedules between which the rules for a target choose, as reports in a fixed order.

    The first is the prior, the report that `explain` returns and the schedule that `compile` and operators
    use. Each of the others has another value for one of its choices, or several. All compute the same, so
    that a tuner may measure them: `compile` takes `schedule=report.schedule`. The program and the options are
    as for `explain`, and so are errors.

    >>> import gossamer as gs
    >>> arguments = {"target": "generic-cpu:vector_bits=512", "specialize": {"feat_size": 40}}
    >>> space = gs.schedule_space("spmm", **arguments)
    >>> space.prior == gs.explain("spmm", **arguments)
    True
    >>> space.prior.choices[0]
    RuleChoice(name='csrmm.tile_vectors', value=3, values=(3, 1))
    >>> narrow = space.at({"csrmm.tile_vectors": 1})
    >>> narrow.decisions[1].what
    'features in 3 tiles of 1 vector of 16 lanes'
    """
    module = program_of(program, specialize=specialize, dtypes=dtypes)
    return space_for_target(module, resolve_elsewhere(target)[1], stats)
