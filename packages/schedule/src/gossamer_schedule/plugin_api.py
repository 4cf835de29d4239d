"""Interface for plugins: primitives of their own, and rules that use those of gossamer.

Plugins import names from here and from `gossamer_schedule`, never from the other modules of the package,
which may move between releases. The table "Modules for plugins" in `docs/plugins.md` lists the modules of
all packages that plugins import.

* A primitive: the decorator `plugin_primitive`, with `LOOP_STAGES` (or `STAGES` of `gossamer_ir.nodes`); the
  `Cursor` that it takes, the `Change` that it returns; `change_of`, if it is made of other primitives
* Look-ups, which refuse names that do not exist: `find_loop`, `find_block`, `find_iteration`, `find_buffer`
* Refusals: `schedule_error`, `require_serial`, `require_zero_start`
* A rule: `TraceBuilder` for its steps, whose `record` has the primitives of gossamer; its `append` takes
  a step of another one; `schedule_report` (all rules of gossamer) and `apply_rule` (one of them), which take
  what a plugin's rule takes: the module, the machine and the stats
* A space of schedules: `TraceBuilder.choose` for its choices, and `enumerate_schedules` for all its points
"""

from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_block, find_buffer, find_iteration, find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial, require_zero_start
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.plugin_primitive import change_of, plugin_primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.rules import apply_rule, schedule_report
from gossamer_schedule.rules.enumerate_schedules import enumerate_schedules
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

__all__ = [
    "Change",
    "Cursor",
    "LOOP_STAGES",
    "TraceBuilder",
    "apply_rule",
    "change_of",
    "enumerate_schedules",
    "find_block",
    "find_buffer",
    "find_iteration",
    "find_loop",
    "plugin_primitive",
    "require_serial",
    "require_zero_start",
    "schedule_error",
    "schedule_report",
]
