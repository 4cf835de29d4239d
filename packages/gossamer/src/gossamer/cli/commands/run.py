"""`gossamer run`: one operator on one matrix, timed with a baseline."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from gossamer.cli.comparison.accuracy import Comparison
from gossamer.cli.comparison.baselines import baseline_of
from gossamer.cli.comparison.graphs import GENERATED_GRAPH, power_law
from gossamer.cli.comparison.operator_run import OperatorRun, operator_run
from gossamer.cli.comparison.timing import interleave_calls
from gossamer.cli.options import (
    FEATURES,
    OPERATOR_NAMES,
    Features,
    MaxBytes,
    TargetName,
    Threads,
    integer_option,
    require_dtype_option,
    require_operator_memory,
    require_range,
)
from gossamer.cli.streams import print_to_stderr
from gossamer.operators import NAMES, operator_named
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import resolve_target
from gossamer_backend import get_num_threads, set_num_threads
from gossamer_formats import SparseTensor, read
from gossamer_formats.internal_api import WIDE_DTYPES, suffixes_in_words
from gossamer_support.message_texts import amount, either

# Small, as an emulated kernel is some hundred times slower than a native one.
NODES, EDGES = 10_000, 100_000

HELP = f"""\
Run an operator on a matrix, and time it and a baseline from SciPy.

Operands are random. Times are medians; the operator writes to a given array, and the baseline allocates
its result. The result is compared with one computed in float64.

Baselines: {"; ".join(f"{baseline_of(op).description} ({op})" for op in NAMES)}.
"""


def run(
    op: Annotated[str, typer.Argument(help=OPERATOR_NAMES)],
    *,
    matrix: Annotated[
        str | None,
        typer.Option(
            help=f"a file that ends in {suffixes_in_words()}; a random graph if not given"
        ),
    ] = None,
    features: Features = FEATURES,
    dtype: Annotated[str, typer.Option(help=either(WIDE_DTYPES))] = "float32",
    threads: Threads = None,
    target: TargetName = DEFAULT_TARGET,
    vector_bits: Annotated[
        int | None,
        integer_option("--vector-bits", help="bits of vectors: vector_bits= of the target"),
    ] = None,
    repeat: Annotated[int, integer_option("--repeat", help="number of timing rounds")] = 10,
    check: Annotated[
        bool, typer.Option("--check", help="exit with 1 if the result is wrong")
    ] = False,
    max_bytes: MaxBytes = None,
    as_json: Annotated[bool, typer.Option("--json", help="end with one JSON object")] = False,
) -> None:
    """Run an operator on a matrix, and time it and a baseline from SciPy."""
    target = _with_vector_bits(target, vector_bits)
    _require_options(op, features=features, dtype=dtype, repeat=repeat, target=target)
    if threads is not None:
        set_num_threads(threads)
    # The baseline takes CSR, and both are timed with the same matrix.
    tensor = _read_graph(matrix, max_bytes).astype(dtype)
    require_operator_memory(op, tensor, features=features, dtype=dtype)
    operator = operator_run(op, tensor, features=features, target=target)
    # Always, since the time of a wrong result says nothing.
    comparison = operator.check()
    times = interleave_calls({"gossamer": operator.run, "scipy": operator.baseline}, rounds=repeat)
    record = _record(operator, times, error=comparison.max_relative_error)
    # Emulated kernels run on one thread, whatever is set.
    used_threads = get_num_threads() if operator.emulator is None else 1
    record |= {"matrix": matrix, "threads": used_threads, "target": target}
    if as_json:
        print(json.dumps({field: record[field] for field in REPORTED_FIELDS}))
    else:
        print(_summary(record, comparison))
    # Last, so that the times are printed even if the result is wrong.
    if check:
        require_within(comparison)


def _with_vector_bits(target: str, bits: int | None) -> str:
    """Return the target with the option; a target that has it already is refused when it is parsed."""
    if bits is None:
        return target
    return f"{target}{',' if ':' in target else ':'}vector_bits={bits}"


def _require_options(op: str, *, features: int, dtype: str, repeat: int, target: str) -> None:
    operator_named(op, among=NAMES)
    require_dtype_option(dtype)
    require_range("--features", features, low=0)
    require_range("--repeat", repeat, low=1, high=1_000_000)
    resolve_target(target)


def _read_graph(file: str | None, max_bytes: int | None) -> SparseTensor:
    if file is None:
        return power_law(NODES, EDGES)
    return read(file, max_bytes=max_bytes).asformat("csr")


REPORTED_FIELDS = (
    "op", "matrix", "shape", "nnz", "features", "dtype", "threads", "target", "emulator",
    "compile_ms", "cached", "median_ms", "max_rel_error", "scipy_ms", "ratio_vs_scipy",
)  # fmt: skip


def _record(operator: OperatorRun, times: Mapping[str, float], *, error: float) -> dict[str, Any]:
    """Return the record of `--json`; `features` is null for vectors, `max_rel_error` if it is not finite."""
    ours, scipy = times["gossamer"], times["scipy"]
    return {
        "op": operator.op,
        "shape": list(operator.tensor.shape),
        "nnz": operator.tensor.nnz,
        "features": operator.features,
        "dtype": operator.tensor.dtype.name,
        "emulator": operator.emulator,
        "compile_ms": operator.compile_ms,
        "cached": operator.is_cached,
        "median_ms": ours,
        "max_rel_error": error if math.isfinite(error) else None,
        "scipy_ms": scipy,
        "ratio_vs_scipy": scipy / ours,
    }


def _summary(record: Mapping[str, Any], comparison: Comparison) -> str:
    rows, columns = record["shape"]
    features = (
        f", {amount(record['features'], 'feature')}" if record["features"] is not None else ""
    )
    emulated = f", emulated by {record['emulator']}" if record["emulator"] is not None else ""
    source = "loaded from the cache" if record["cached"] else "compiled"
    verdict = "within" if comparison.is_within else "NOT within"
    return "\n".join(
        (
            f"{record['op']} of {record['matrix'] or GENERATED_GRAPH}",
            f"matrix    {rows:,} by {columns:,}, {record['nnz']:,} nonzeros{features}, {record['dtype']}",
            f"on        {amount(record['threads'], 'thread')}, {record['target']}{emulated}",
            f"kernel    {source} in {record['compile_ms']:.1f} ms",
            f"gossamer  {record['median_ms']:.4g} ms",
            f"scipy     {record['scipy_ms']:.4g} ms, {record['ratio_vs_scipy']:.2f} times as long",
            f"error     {comparison.max_relative_error:.2g} of a sum's absolute terms, {verdict} the "
            f"rounding of the sums (at most {comparison.tolerance:.2g})",
        )
    )


def require_within(comparison: Comparison) -> None:
    """Exit with code 1 if the error of a result exceeds the bound of rounding."""
    if comparison.is_within:
        return
    print_to_stderr(
        f"check failed: the largest error is {comparison.max_relative_error:.3g} of a sum's absolute "
        f"terms; expected at most the rounding of each sum, {comparison.tolerance:.3g} for the longest."
    )
    raise typer.Exit(1)
