"""The command `gpu`: correctness, then speed, printed and stored."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console

from benchmarks.contenders import OURS
from benchmarks.goals import geometric_mean
from benchmarks.gpu.gpu_cases import gpu_cases
from benchmarks.gpu.gpu_checks import (
    fuzzed_checks,
    instruction_checks,
    suite_checks,
    warpgroup_checks,
)
from benchmarks.gpu.gpu_contenders import GPU_CONTENDERS
from benchmarks.gpu.gpu_goals import gpu_goals_sheet
from benchmarks.gpu.gpu_records import CORRECT, GpuCheck, GpuRun, GpuTime
from benchmarks.gpu.gpu_times import measured_times
from benchmarks.gpu.instruction_checks import checked_instructions
from benchmarks.gpu.suite_checks import CONFORMANCE, CORPUS, backend_suite, checks_of
from benchmarks.gpu.warpgroup_checks import checked_uses
from benchmarks.machine.machine_description import short_name
from benchmarks.text_tables import Sheet, to_rich
from gossamer.compilation.build_kernels import DISTRIBUTIONS
from gossamer.targets.parse_target import parse_target
from gossamer.targets.resolve_target import registry
from gossamer_backend import package_versions
from gossamer_cuda_mma_sp.device.gpu_device import gpu_device
from gossamer_cuda_mma_sp.driver.device_limits import INTERPRETED, DeviceLimits
from gossamer_cuda_mma_sp.target.gpu import gpu_of

NO_GPU = 2
"""The exit status if the target does not work on this machine."""
ALLOWED_ERROR = 1e-3
"""The relative error above which a result is wrong: products may be of half precision."""


def gpu_command(chosen: argparse.Namespace, console: Console) -> int:
    """Run the checks and the benchmarks. Return `NO_GPU` without a GPU, 1 if a result was wrong."""
    target = parse_target(chosen.target)
    probe = registry.backend(target.backend).probe(target)
    if not probe.is_usable:
        console.print(f"nothing was run: {probe.reason}", soft_wrap=True, markup=False)
        return NO_GPU
    run = _measured_run(chosen, console)
    sheets = (gpu_checks_sheet(run.checks), gpu_times_sheet(run.times), gpu_goals_sheet(run.times))
    for sheet in sheets:
        console.print(to_rich(sheet))
    for check in run.checks:
        if check.is_wrong:
            console.print(f"WRONG {check.suite} {check.name}: {check.outcome}", markup=False)
    if not chosen.no_save:
        console.print(f"stored {save_gpu_run(run, chosen.output)}", soft_wrap=True)
    return 1 if run.is_wrong else 0


def _measured_run(chosen: argparse.Namespace, console: Console) -> GpuRun:
    checks = list(_correctness_checks(chosen, console))
    cases = gpu_cases(chosen.op, chosen.matrix, chosen.features, chosen.size, chosen.dtype)
    times = []
    for each in measured_times(
        cases,
        chosen.target,
        contenders=chosen.contenders,
        pythons=dict(chosen.python),
        calls=chosen.calls,
    ):
        console.print(time_line(each), soft_wrap=True, markup=False)
        times.append(each)
        checks.append(_time_check(each))
    driver, limits = _driver_of(chosen.target)
    return GpuRun(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        target=chosen.target,
        gpu=limits.name,
        compute_capability=limits.compute_capability,
        driver=driver,
        cuda=limits.cuda_version,
        versions=dict(package_versions(DISTRIBUTIONS)),
        checks=tuple(checks),
        times=tuple(times),
    )


def _correctness_checks(chosen: argparse.Namespace, console: Console) -> Iterator[GpuCheck]:
    """Yield the checks of everything that has no time."""
    target = copying_target(chosen.target)
    suite = backend_suite(target)
    programs = min(chosen.programs, len(checks_of(suite, CORPUS)))
    tests = min(chosen.conformance, len(checks_of(suite, CONFORMANCE)))
    gpu = gpu_of(parse_target(target))
    instructions = min(chosen.instructions, len(checked_instructions(gpu)))
    warpgroups = min(chosen.warpgroups, len(checked_uses(gpu)))
    console.print(
        f"{instructions} matrix instructions, {warpgroups} of warpgroups, {programs} programs of the "
        f"corpus, {tests} tests of the conformance suite, {chosen.fuzzed} random programs"
    )
    yield from instruction_checks(target, instructions)
    yield from warpgroup_checks(target, warpgroups)
    yield from suite_checks(CORPUS, target, programs)
    yield from suite_checks(CONFORMANCE, target, tests)
    yield from fuzzed_checks(target, chosen.fuzzed, chosen.seed)


def copying_target(target: str) -> str:
    """Return the target whose kernels take arrays of NumPy, as those of checks do.

    >>> copying_target("cuda-mma-sp:arch=sm_90"), copying_target("cuda-mma-sp:driver=interpreter")
    ('cuda-mma-sp:arch=sm_90,host_arrays=copy', 'cuda-mma-sp:driver=interpreter')
    """
    parsed = parse_target(target)
    if gpu_of(parsed).copies:
        return target
    return f"{target}{',' if parsed.options else ':'}host_arrays=copy"


def _driver_of(target: str) -> tuple[str, DeviceLimits]:
    gpu = gpu_of(parse_target(target))
    if gpu.is_interpreted:
        return "interpreter", INTERPRETED
    device = gpu_device(gpu.driver, gpu.number)
    return device.driver.name, device.limits


def _time_check(time: GpuTime) -> GpuCheck:
    """Return the check of the result of gossamer."""
    name = f"{time.op} {time.matrix} {time.features} {time.dtype}"
    if OURS not in time.errors:
        return GpuCheck("operators", name, time.missing.get(OURS, "not run"), is_wrong=True)
    error = time.errors[OURS]
    if error <= ALLOWED_ERROR:
        return GpuCheck("operators", name, CORRECT)
    return GpuCheck("operators", name, f"the relative error is {error:.1e}", is_wrong=True)


def time_line(time: GpuTime) -> str:
    """Return the times of a case as a line."""
    texts = [f"{name} {median:.3f} ms" for name, median in time.medians.items()]
    texts += [f"{name} missing" for name in time.missing]
    rows, columns = time.shape
    return f"{time.op} {time.matrix} {rows}x{columns} K={time.features} {time.dtype}: {', '.join(texts)}"


def gpu_checks_sheet(checks: Sequence[GpuCheck]) -> Sheet:
    """Return the numbers of correct, wrong and other programs of each suite."""
    counts = Counter((check.suite, _kind(check)) for check in checks)
    kinds = (CORRECT, "wrong", "not run")
    rows = [
        (suite, *(str(counts[suite, kind]) for kind in kinds))
        for suite in dict.fromkeys(check.suite for check in checks)
    ]
    return Sheet("correctness", ("suite", *kinds), rows=rows)


def _kind(check: GpuCheck) -> str:
    if check.is_wrong:
        return "wrong"
    return CORRECT if check.outcome == CORRECT else "not run"


def gpu_times_sheet(times: Sequence[GpuTime]) -> Sheet:
    """Return the geometric means, for each operator, of the time of a contender over that of gossamer."""
    rows = []
    for op, dtype in dict.fromkeys((time.op, time.dtype) for time in times):
        cells = [op, dtype]
        row_medians = [time.medians for time in times if (time.op, time.dtype) == (op, dtype)]
        for name in GPU_CONTENDERS:
            both = [medians for medians in row_medians if {name, OURS} <= medians.keys()]
            ratios = [medians[name] / medians[OURS] for medians in both]
            cells.append(f"{geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else "-")
        rows.append(tuple(cells))
    return Sheet(
        "time of others over that of gossamer: geometric mean (least)",
        ("operator", "dtype", *GPU_CONTENDERS),
        rows=rows,
        note="cold second-level cache; medians of single calls",
    )


def save_gpu_run(run: GpuRun, folder: Path) -> Path:
    """Write a run, in place of an older one of the same GPU, and return the path."""
    # Beside the runs of CPUs, whose files have another form.
    path = folder / "gpu" / f"{short_name(run.gpu)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")
    return path
