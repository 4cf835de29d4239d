"""Names for the other distributions of the release, besides the exports of the package.

Default schedules, and traces as text and data. A release pins the
versions of its distributions, so these names may change with each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_schedule.conversion_loops.parallel_outer_loops import parallel_outer_loops
    from gossamer_schedule.conversion_loops.unroll_counting_loops import unroll_counting_loops
    from gossamer_schedule.rules import default_space, schedule_report
    from gossamer_schedule.trace.codec import step_to_python, trace_from_json
    from gossamer_schedule.trace.replay import parameters_of

_HOMES = {
    "default_space": "gossamer_schedule.rules",
    "parallel_outer_loops": "gossamer_schedule.conversion_loops.parallel_outer_loops",
    "parameters_of": "gossamer_schedule.trace.replay",
    "schedule_report": "gossamer_schedule.rules",
    "step_to_python": "gossamer_schedule.trace.codec",
    "trace_from_json": "gossamer_schedule.trace.codec",
    "unroll_counting_loops": "gossamer_schedule.conversion_loops.unroll_counting_loops",
}

__all__ = [
    "default_space",
    "parallel_outer_loops",
    "parameters_of",
    "schedule_report",
    "step_to_python",
    "trace_from_json",
    "unroll_counting_loops",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
