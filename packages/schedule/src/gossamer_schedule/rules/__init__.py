"""Rules for default schedules, which derive a `Schedule` from the pattern of a computation, a machine and the
statistics of the data. A rule analyzes the coordinate module. It plans steps, but does not apply them.
"""

# Other expressions: nothing is concluded from them.

from gossamer_schedule.rules.default_schedule import (
    apply_rule,
    default_schedule,
    default_space,
    schedule_report,
)
from gossamer_schedule.rules.ordered_rules import RULES

__all__ = ["RULES", "apply_rule", "default_schedule", "schedule_report", "default_space"]
