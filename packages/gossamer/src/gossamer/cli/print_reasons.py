"""Print the reasons for a schedule: each decision with its reason and its steps."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from gossamer.cli.console import table_console
from gossamer.compilation.pipeline import report_for_target
from gossamer.targets.resolve_target import resolve_elsewhere
from gossamer_ir.interchange.records import Decision, RuleChoice, ScheduleReport, Stats
from gossamer_ir.nodes import Module
from gossamer_support.message_texts import either


def print_reasons(module: Module, *, target: str, stats: Stats | None) -> None:
    """Print the reasons for a module's schedule for a target and a matrix with these stats."""
    _, resolved = resolve_elsewhere(target)
    report = report_for_target(module, resolved, stats)
    facts = {
        "rule": report.rule or "none",
        "pattern": report.pattern,
        "target": resolved.text,
        "matrix": _stats_text(stats),
    }
    if report.choices:
        facts["choices"] = "\n".join(map(_choice_text, report.choices))
    table = Table.grid(padding=(0, 1))
    for name, text in facts.items():
        table.add_row(Text(name, style="bold"), Text(text))
    for row in _rows(report):
        table.add_row(*row)
    table_console().print(table)


def _choice_text(choice: RuleChoice) -> str:
    others = either(str(value) for value in choice.values if value != choice.value)
    return f"{choice.name} is {choice.value}, and could be {others}"


def _rows(report: ScheduleReport) -> Iterator[tuple[Text, Text]]:
    for number, decision in enumerate(report.decisions, 1):
        yield Text(), Text()
        yield Text(f"{number}.", style="bold"), Text(decision.what, style="bold")
        yield Text(), Text(f"because {decision.why}")
        for step in _steps(decision):
            yield Text(), Text(step, style="cyan")


def _steps(decision: Decision) -> Iterator[str]:
    from gossamer_schedule.internal_api import step_to_python

    for step in decision.steps:
        yield f"{decision.stage}.{step_to_python(step)}"


def _stats_text(stats: Stats | None) -> str:
    if stats is None:
        return "nothing is known of it (--matrix FILE)"
    return (
        f"{stats.rows:,} by {stats.columns:,}, {stats.nnz:,} nonzeros; rows of {stats.mean_row:.3g} on "
        f"average, {stats.longest_row:,} at most"
    )
