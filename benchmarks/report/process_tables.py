"""Tables of what processes cost besides kernels: compilation, start, calls, and memory."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.records import CallCost, CompileTime, FirstCall, MiniBatches, PythonShare, Startup
from benchmarks.report.text_tables import Sheet


def compile_sheet(times: Iterable[CompileTime]) -> Sheet:
    """Return the times from script to callable in a fresh process; at most 3 times LLVM, a tenth when
    cached."""
    columns = ("op", "done before", "K", "taking", "nothing cached", "LLVM", "ratio")
    sheet = Sheet(
        "script to callable, ms, fresh processes", (*columns, "request cache", "ratio"), words=2
    )
    for time in times:
        texts = (
            f"{time.before_ms:.0f}",
            f"{time.uncached_ms:.1f}",
            f"{time.llvm_ms:.1f}",
            f"{time.uncached_ms / time.llvm_ms:.2f}",
            f"{time.cached_ms:.2f}",
            f"{time.cached_ms / time.uncached_ms:.3f}",
        )
        sheet.rows.append((time.op, time.done_before, str(time.features), *texts))
    return sheet


def first_calls_sheet(calls: Iterable[FirstCall]) -> Sheet:
    """Return first calls against their goals."""
    columns = ("op", "call", "K", "median", "least of CPU", "wanted at most", "")
    sheet = Sheet("a call with nothing cached, ms, fresh processes", columns, words=2)
    for call in calls:
        figures = (str(call.features), f"{call.median_ms:.1f}", f"{call.least_cpu_ms:.1f}")
        limit = "-" if call.limit_ms is None else f"{call.limit_ms:.0f}"
        verdict = "" if call.limit_ms is None else "met" if call.is_met else "MISSED"
        sheet.rows.append((call.op, call.state, *figures, limit, verdict))
    return sheet


def python_sheet(shares: Iterable[PythonShare]) -> Sheet:
    """Return Python's time against its goal."""
    columns = ("what", "Python", "LLVM", "ratio", "wanted at most", "")
    sheet = Sheet("what Python takes to compile, ms, fresh processes", columns)
    for share in shares:
        figures = (f"{share.python_ms:.1f}", f"{share.llvm_ms:.1f}", f"{share.ratio:.2f}")
        verdict = "met" if share.is_met else "MISSED"
        sheet.rows.append((share.what, *figures, f"{share.limit:.1f}", verdict))
    return sheet


def startup_sheet(startups: Iterable[Startup]) -> Sheet:
    """Start times against their goals."""
    sheet = Sheet("start, ms, fresh processes", ("what", "median", "wanted below", "LLVM", ""))
    for one in startups:
        loaded = {None: "-", False: "not loaded", True: "LOADED"}[one.loads_llvm]
        verdict = "met" if one.is_met else "MISSED"
        limit = "-" if one.limit_ms is None else f"{one.limit_ms:.0f}"
        figures = (f"{one.median_ms:.0f}", limit, loaded, verdict)
        sheet.rows.append((one.what, *figures))
    return sheet


def calls_sheet(costs: Iterable[CallCost]) -> Sheet:
    """Return costs of calls on one element against their goals."""
    columns = ("op", "call", "median", "wanted below", "")
    sheet = Sheet("cost of a call, us, one element, one thread", columns, words=2)
    for cost in costs:
        limit = "-" if cost.limit_us is None else f"{cost.limit_us:g}"
        verdict = "" if cost.limit_us is None else "met" if cost.is_met else "MISSED"
        sheet.rows.append((cost.op, cost.what, f"{cost.median_us:.2f}", limit, verdict))
    return sheet


def batches_sheet(runs: Iterable[MiniBatches]) -> Sheet:
    """Return memory, files and overhead of many different matrices in one process."""
    columns = (
        "graph",
        "batches",
        "memory, MB",
        "late files",
        "besides the kernel, us",
        "SciPy, us",
        "",
    )
    title = "different matrices in one process; wanted: below 5 MB, no files, 25 us"
    sheet = Sheet(title, columns)
    for one in runs:
        figures = (f"{one.batches:,}", f"{one.grown_mb:.1f}", str(one.late_files))
        times = (f"{one.overhead_us:.1f}", f"{one.scipy_us:.1f}")
        sheet.rows.append((one.graph, *figures, *times, "met" if one.is_met else "MISSED"))
    return sheet
