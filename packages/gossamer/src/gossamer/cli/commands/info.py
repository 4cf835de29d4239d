"""`gossamer info`: the structure of a matrix, and the format that the model chooses for it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from gossamer.cli.matrix_properties import bandwidth_of, row_histogram
from gossamer.cli.options import (
    FEATURES,
    MaxBytes,
    TargetName,
    Threads,
    integer_option,
    require_dtype_option,
    require_operator_memory,
    require_range,
)
from gossamer.operator_calls.prepared_formats.row_order import properties_for
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import machine_for, resolve_elsewhere
from gossamer_backend import get_num_threads, set_num_threads
from gossamer_formats import SparseTensor, read
from gossamer_formats.internal_api import WIDE_DTYPES, suffixes_in_words
from gossamer_ir.errors import ArgumentError
from gossamer_support.message_texts import amount, either
from gossamer_tune import FormatChoice, MatrixProperties, Workload, choose_format


def info(
    file: Annotated[str, typer.Argument(help=f"a file that ends in {suffixes_in_words()}")],
    *,
    features: Annotated[
        list[int] | None,
        integer_option(
            "--features",
            help=f"columns of the dense matrix, {FEATURES} by default; may be repeated",
        ),
    ] = None,
    calls: Annotated[
        int, integer_option("--calls", help="number of products for which a conversion may pay")
    ] = 1000,
    measure: Annotated[
        bool, typer.Option("--measure", help="time the formats that are expected to be fastest")
    ] = False,
    dtype: Annotated[
        str | None, typer.Option(help=f"{either(WIDE_DTYPES)}; that of the file if not given")
    ] = None,
    threads: Threads = None,
    target: TargetName = DEFAULT_TARGET,
    max_bytes: MaxBytes = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Describe a matrix, and the format in which it is expected to be multiplied fastest (spmm).

    The description has the sizes, the lengths of rows, the bandwidth, and how full square blocks are. Blocks
    and the mean distance from the diagonal are those of a sample of rows. For each number of features, the
    model's choice is printed with the expected cost of each format and the reason. If a tensor does not
    have two dimensions, only the sizes are printed.
    """
    _require_options(features, calls=calls, dtype=dtype, target=target)
    # The model is asked for the number of threads that is set, so this comes before it.
    if threads is not None:
        set_num_threads(threads)
    tensor = read(file, dtype=dtype, max_bytes=max_bytes)
    record = {"file": file, **_sizes(tensor), **dict.fromkeys(_OF_MATRICES)}
    choices: list[tuple[int, FormatChoice]] = []
    if tensor.ndim == 2:
        structure, choices = _structure_and_choices(
            tensor.tocsr(), features or [FEATURES], calls=calls, target=target, measure=measure
        )
        record |= structure
    else:
        _require_matrix(file, tensor, {"--features": bool(features), "--measure": measure})
    if as_json:
        print(
            json.dumps(
                record | {"choices": [_choice_record(count, choice) for count, choice in choices]}
            )
        )
    else:
        _print_tables(record, choices)


def _require_options(
    features: list[int] | None, *, calls: int, dtype: str | None, target: str
) -> None:
    """Raise for values that cannot be, before a file is read that may be large."""
    for count in features or ():
        require_range("--features", count, low=1)
    require_range("--calls", calls, low=1)
    if dtype is not None:
        require_dtype_option(dtype)
    resolve_elsewhere(target)


def _print_tables(record: dict[str, Any], choices: list[tuple[int, FormatChoice]]) -> None:
    from gossamer.cli.matrix_tables import print_choice, print_matrix

    print_matrix(record)
    for count, choice in choices:
        print_choice(count, choice)


_OF_MATRICES = ("rows", "bandwidth", "block_fill")
"""The fields of the record that are null unless the tensor has two dimensions."""


def _require_matrix(file: str, tensor: SparseTensor, options: dict[str, bool]) -> None:
    """Raise if an option is given that applies to matrices only."""
    for option, is_given in options.items():
        if is_given:
            raise ArgumentError(
                "option.dimensions",
                f"{option} applies to matrices, and '{file}' has {amount(tensor.ndim, 'dimension')}.",
            )


def _sizes(tensor: SparseTensor) -> dict[str, Any]:
    size = math.prod(tensor.shape)
    return {
        "format": tensor.format,
        "shape": list(tensor.shape),
        "nnz": tensor.nnz,
        "density": tensor.nnz / size if size else 0.0,
        "dtype": tensor.dtype.name,
        "bytes": tensor.nbytes,
    }


def _workload(matrix: SparseTensor, features: int, *, target: str) -> Workload:
    machine = machine_for(target)
    return Workload(features, matrix.dtype.name, machine, get_num_threads())


def _structure_and_choices(
    matrix: SparseTensor, features: Sequence[int], *, calls: int, target: str, measure: bool
) -> tuple[dict[str, Any], list[tuple[int, FormatChoice]]]:
    """Return the structure of a matrix in CSR, and the chosen format for each number of features."""
    # A number of features that was given twice is printed once.
    workloads = [_workload(matrix, count, target=target) for count in dict.fromkeys(features)]
    properties = properties_for(matrix, *workloads)
    chosen = partial(_choice, matrix, properties, calls=calls, target=target, measure=measure)
    choices = [(one.columns, chosen(one)) for one in workloads]
    return _structure(matrix, properties), choices


def _structure(matrix: SparseTensor, properties: MatrixProperties) -> dict[str, Any]:
    indptr, indices = matrix.arrays["indptr"], matrix.arrays["indices"]
    bandwidth = bandwidth_of(indptr, indices)
    return {
        "rows": {
            "mean": properties.lengths.mean,
            "deviation": properties.lengths.deviation,
            "longest": properties.lengths.longest,
            "empty": properties.lengths.empty,
            "histogram": [bucket._asdict() for bucket in row_histogram(indptr)],
        },
        "bandwidth": {**bandwidth._asdict(), "mean": properties.bandwidth * properties.columns},
        "block_fill": {str(size): fill for size, fill in properties.block_fill.items()},
    }


def _choice(
    matrix: SparseTensor,
    properties: MatrixProperties,
    workload: Workload,
    *,
    calls: int,
    target: str,
    measure: bool,
) -> FormatChoice:
    """Return the choice of the model, or with `measure` that of the timings."""
    if not measure:
        return choose_format(properties, workload, calls=calls)
    from gossamer.api.explain import explain
    from gossamer.api.prepare import prepare

    features = workload.columns
    # The model allocates nothing, but timings need operands and a result.
    require_operator_memory("spmm", matrix, features=features, dtype=workload.dtype)
    return explain(prepare(matrix, features=features, calls=calls, measure=True, target=target))


def _choice_record(features: int, choice: FormatChoice) -> dict[str, Any]:
    return {
        "features": features,
        "calls": choice.calls,
        "chosen": choice.chosen.text,
        "speedup": choice.speedup,
        "paying_calls": choice.paying_calls,
        "estimates": [
            {
                "format": estimate.format,
                "parameters": dict(estimate.parameters),
                "cycles": estimate.cycles,
                "conversion_cycles": estimate.conversion_cycles,
                "reason": estimate.reason,
                "measured_seconds": choice.seconds.get(estimate.text),
            }
            for estimate in choice.estimates
        ],
    }
