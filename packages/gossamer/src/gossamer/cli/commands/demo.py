"""`gossamer demo`: from a script to a kernel on a graph, checked and timed."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from gossamer.cli.comparison.graphs import GENERATED_GRAPH, power_law
from gossamer.cli.comparison.operator_run import OperatorRun, operator_run
from gossamer.cli.comparison.timing import TimedCall, interleave_calls
from gossamer.cli.options import (
    FEATURES,
    Features,
    MaxBytes,
    TargetName,
    Threads,
    require_operator_memory,
    require_range,
)
from gossamer.operators import product_names
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import resolve_target
from gossamer_backend import get_num_threads, set_num_threads
from gossamer_formats import SparseTensor, read
from gossamer_ir.interchange.records import Trace
from gossamer_support.message_texts import amount

# About the size of ogbn-arxiv (169,343 nodes, 1,166,243 edges), a common benchmark of graph networks.
NODES, EDGES, ROUNDS = 170_000, 1_200_000, 7


def demo(
    *,
    matrix: Annotated[
        str | None, typer.Option(help="a matrix file; a random graph if not given")
    ] = None,
    features: Features = FEATURES,
    target: TargetName = DEFAULT_TARGET,
    threads: Threads = None,
    max_bytes: MaxBytes = None,
) -> None:
    """Compile the operators for a graph, check and time them.

    The operators are sparse matrix times dense matrix (spmm) and times vector (spmv). The graph has
    170,000 nodes, 1.2 million edges and a power-law degree distribution. It takes less than a minute.
    """
    require_range("--features", features, low=1)
    resolve_target(target)
    if threads is not None:
        set_num_threads(threads)
    console = Console(highlight=False, soft_wrap=True)
    with _progress(console) as progress:
        job = progress.add_task("making the graph" if matrix is None else "reading", total=None)
        graph = _read_graph(matrix, max_bytes)
        for op in product_names():
            require_operator_memory(op, graph, features=features, dtype="float32")
        console.print(_graph_summary(graph, matrix), markup=False)
        operators = []
        for op in product_names():
            progress.update(job, description=f"compiling {op}")
            operators.append(operator_run(op, graph, features=features, target=target))
            _show_stages(console, operators[-1])
        for operator in operators:
            progress.update(job, description=f"checking {operator.op}")
            _require_right_result(console, operator)
        progress.update(job, total=ROUNDS * len(operators), completed=0)
        times = {}
        for operator in operators:
            progress.update(job, description=f"timing {operator.op}")
            times[operator.op] = _median_times(operator, after_round=lambda: progress.advance(job))
    console.print(_times_table(times, features=features))


class _Progress(Progress):
    def stop(self) -> None:
        # An empty progress bar would leave an empty line in versions of rich before 15.
        if not self.disable:
            super().stop()


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    return _Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _read_graph(file: str | None, max_bytes: int | None) -> SparseTensor:
    if file is None:
        return power_law(NODES, EDGES)
    return read(file, dtype="float32", max_bytes=max_bytes).asformat("csr")


def _graph_summary(graph: SparseTensor, file: str | None) -> str:
    stats = graph.stats
    name = GENERATED_GRAPH if file is None else file
    return (
        f"{name}: {stats.rows:,} by {stats.columns:,}, {stats.nnz:,} nonzeros\n"
        f"rows: {stats.mean_row:.1f} nonzeros on average, {stats.longest_row:,} at most, "
        f"{stats.empty_rows:,} empty"
    )


def _show_stages(console: Console, operator: OperatorRun) -> None:
    texts = operator.stage_texts()
    if operator.op == "spmm":
        for stage in ("coordinate", "position"):
            console.rule(f"{operator.op}, {stage} stage", align="left")
            console.print(texts[stage].rstrip(), markup=False)
        console.rule()
        console.print("gossamer show spmm --stage loop (flat, llvm, asm) prints the others.\n")
    steps = [step.op for trace in _traces(operator) for step in trace]
    sizes = ", ".join(f"{stage} {text.count(chr(10)) + 1}" for stage, text in texts.items())
    source = "loaded from the cache" if operator.is_cached else "compiled"
    console.print(
        _titled_text(f"{operator.op}: schedule", ", ".join(steps) or "none"), markup=False
    )
    console.print(_titled_text(f"{operator.op}: lines", sizes), markup=False)
    console.print(
        _titled_text(f"{operator.op}: kernel", f"{source} in {operator.compile_ms:.1f} ms")
    )


def _titled_text(name: str, text: str) -> str:
    """Return a titled text in lines of at most 80 columns."""
    start = f"{name:<16}"
    return fill(text, 79, initial_indent=start, subsequent_indent=" " * len(start))


def _traces(operator: OperatorRun) -> tuple[Trace, ...]:
    return tuple(operator.schedule().traces.values())


def _require_right_result(console: Console, operator: OperatorRun) -> None:
    comparison = operator.check()
    verdict = "right" if comparison.is_within else "WRONG"
    error = f"largest error {comparison.max_relative_error:.2g} of |A| |B| in float64, {verdict}"
    console.print(_titled_text(f"{operator.op}: check", error), markup=False)
    if not comparison.is_within:
        raise typer.Exit(1)


def _median_times(operator: OperatorRun, *, after_round: TimedCall) -> dict[str, float]:
    calls: dict[str, TimedCall] = {"gossamer": operator.run, "SciPy": operator.baseline}
    return interleave_calls(calls, rounds=ROUNDS, after_round=after_round)


def _times_table(times: Mapping[str, Mapping[str, float]], *, features: int) -> Table:
    threads = amount(get_num_threads(), "thread")
    table = Table(
        title=f"median ms, float32, {amount(features, 'feature')}, {threads} (SciPy has one)",
        title_justify="left",
    )
    table.add_column("operator")
    for heading in ("gossamer", "SciPy", "SciPy / gossamer"):
        table.add_column(heading, justify="right")
    for op, medians in times.items():
        ours, scipy = medians["gossamer"], medians["SciPy"]
        table.add_row(op, f"{ours:.3g}", f"{scipy:.3g}", f"{scipy / ours:.2f}")
    return table
