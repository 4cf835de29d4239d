"""Print the description of a matrix, and the format that the model chooses for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gossamer.cli.console import table_console
from gossamer_support.message_texts import amount, readable_size
from gossamer_tune import Estimate, FormatChoice

BAR = 40
"""The width of the longest bar in columns."""


def print_matrix(record: Mapping[str, Any]) -> None:
    """Print the record of a tensor as `gossamer info --json` returns it: its sizes, and of a matrix also its
    structure."""
    console = table_console()
    table = Table.grid(padding=(0, 2))
    for name, text in _lines(record):
        table.add_row(Text(name, style="bold"), Text(text))
    console.print(table)
    if record["rows"] is not None and record["rows"]["histogram"]:
        console.print()
        console.print(_histogram(record["rows"]["histogram"]))


def _lines(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "file", record["file"]
    yield "shape", " by ".join(f"{length:,}" for length in record["shape"])
    yield "nonzeros", f"{record['nnz']:,}, density {record['density']:.3g}"
    yield "storage", f"{record['format']}, {record['dtype']}, {readable_size(record['bytes'])}"
    if record["rows"] is None:
        return
    rows, bandwidth = record["rows"], record["bandwidth"]
    yield (
        "rows",
        f"{rows['mean']:.3g} nonzeros on average (deviation {rows['deviation']:.3g}), {rows['longest']:,} at "
        f"most; {rows['empty']:,} empty",
    )
    yield (
        "bandwidth",
        f"{bandwidth['lower']:,} below the diagonal, {bandwidth['upper']:,} above; mean distance "
        f"{bandwidth['mean']:,.1f}",
    )
    fills = (f"{size} by {size} {fill:.0%}" for size, fill in record["block_fill"].items())
    yield "blocks", f"filled: {', '.join(fills)}"


def _histogram(buckets: list[dict[str, int]]) -> Table:
    """Return a table of row lengths with a bar for the number of rows."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("row length", justify="right")
    table.add_column("rows", justify="right")
    table.add_column("nonzeros", justify="right")
    table.add_column("")
    most = max(bucket["rows"] for bucket in buckets)
    for bucket in buckets:
        table.add_row(
            _range_text(bucket["least"], bucket["most"]),
            f"{bucket['rows']:,}",
            f"{bucket['nonzeros']:,}",
            ProgressBar(
                total=most, completed=bucket["rows"], width=BAR, finished_style="bar.complete"
            ),
        )
    return table


def _range_text(least: int, most: int) -> str:
    """Return a range of row lengths in words.

    >>> _range_text(2, 2), _range_text(513, 1024)
    ('2', '513 to 1,024')
    """
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def print_choice(features: int, choice: FormatChoice) -> None:
    """Print the chosen format for a number of features, and the estimates for all formats, the fastest
    first."""
    console = table_console()
    console.print()
    console.print(
        Text(f"spmm, {amount(features, 'feature')}, {_calls_text(choice.calls)}: ")
        + Text(choice.chosen.text, style="bold")
        + Text(_gain_text(choice))
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("format", no_wrap=True)
    table.add_column("cycles", justify="right")
    table.add_column("conversion", justify="right")
    if choice.seconds:
        table.add_column("measured", justify="right")
    table.add_column("because")
    for estimate in choice.estimates:
        table.add_row(*_row(estimate, choice), style="bold" if estimate == choice.chosen else None)
    console.print(table)


def _calls_text(count: int) -> str:
    return "1 call" if count == 1 else f"{count:,} calls"


def _gain_text(choice: FormatChoice) -> str:
    """Return the expected or measured speedup, and the number of calls that pays for the conversion.

    >>> fast, slow = Estimate("bsr", {}, 5.0, 90.0, ""), Estimate("csr", {}, 10.0, 0.0, "")
    >>> choice = FormatChoice(fast, (fast, slow), 100)
    >>> _gain_text(choice)
    ', expected to be 2 times as fast as csr, and to pay from 19 calls on'
    >>> _gain_text(choice._replace(seconds={"bsr": 2.0, "csr": 3.0}))
    ', measured to be 1.5 times as fast as csr'
    >>> _gain_text(choice._replace(chosen=slow))
    ''
    """
    chosen, csr = choice.chosen, choice.csr
    if chosen == csr:
        return ""
    if choice.seconds:
        speedup = choice.seconds[csr.text] / choice.seconds[chosen.text]
        return f", measured to be {speedup:.3g} times as fast as csr"
    text = f", expected to be {choice.speedup:.3g} times as fast as csr"
    if choice.paying_calls is not None:
        text += f", and to pay from {_calls_text(choice.paying_calls)} on"
    return text


def _row(estimate: Estimate, choice: FormatChoice) -> Iterator[str]:
    yield estimate.text
    yield f"{estimate.cycles:.3g}"
    yield f"{estimate.conversion_cycles:.3g}" if estimate.conversion_cycles else ""
    if choice.seconds:
        seconds = choice.seconds.get(estimate.text)
        yield "" if seconds is None else f"{seconds * 1e3:.3g} ms"
    yield estimate.reason
