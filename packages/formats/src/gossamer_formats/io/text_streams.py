"""Text files, plain or compressed with gzip, and their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount

MAX_LINE_LENGTH = 1 << 16
"""The longest line of an entry or a comment. Without a limit, a compressed file could decompress to a single
line that fills the memory."""
_BLOCK_CHARACTERS = 1 << 16
"""The number of characters that are split into lines at once."""
_MAX_QUOTE_LENGTH = 40
"""The number of characters of a field that an error quotes."""
_ENTRIES_WRITTEN = 1 << 14
"""The number of entries that are made into text at once."""


def open_text(file: Path) -> TextIO:
    """Open a file for reading as text, with gzip if its name ends in .gz. Bytes that are not UTF-8 are
    read as a replacement character, which no number contains."""
    if _is_compressed(file):
        import gzip

        return gzip.open(file, "rt", encoding="utf-8", errors="replace")
    return file.open(encoding="utf-8", errors="replace")


def create_text(file: Path) -> TextIO:
    """Open a file for writing text, with gzip if its name ends in .gz."""
    if _is_compressed(file):
        import gzip

        return gzip.open(file, "wt", compresslevel=6, encoding="ascii")
    return file.open("w", encoding="ascii")


def _is_compressed(file: Path) -> bool:
    return file.name.lower().endswith(".gz")


class LineBlock(NamedTuple):
    """Lines that were read at once, and the number of the first one, from 1 on."""

    lines: list[str]
    first: int


def line_blocks(stream: TextIO, *, first: int = 1) -> Iterator[LineBlock]:
    """Yield all lines, block by block; raises `ValueError` for one that is too long.

    `first` is the number of the first line that has not been read.
    """
    rest = ""
    while text := stream.read(_BLOCK_CHARACTERS):
        lines = (rest + text).split("\n")
        # The last line may go on in the next block.
        rest = lines.pop()
        if len(rest) > MAX_LINE_LENGTH:
            raise ValueError(
                f"line {first + len(lines)} has more than {MAX_LINE_LENGTH} characters"
            )
        yield LineBlock(lines, first)
        first += len(lines)
    yield LineBlock([rest], first)


def entry_problem(line: str, *, coordinates: int, has_value: bool = True) -> str | None:
    """Return why a line is not an entry of `coordinates` integers and a value, or None.

    >>> entry_problem("1 2.5 3.0", coordinates=2)
    "the coordinate '2.5'; expected an integer below 2**63"
    """
    fields = line.split()
    if len(fields) != coordinates + has_value:
        wanted = amount(coordinates, "coordinate") + (" and a value" if has_value else "")
        return f"{amount(len(fields), 'number')}; expected {wanted}"
    for field in fields[:coordinates]:
        if not _is_int64(field):
            return f"the coordinate '{field[:_MAX_QUOTE_LENGTH]}'; expected an integer below 2**63"
    try:
        float(fields[-1])
    except ValueError:
        return f"the value '{fields[-1][:_MAX_QUOTE_LENGTH]}'; expected a number"
    return None


def _is_int64(field: str) -> bool:
    digits = field.removeprefix("-")
    # The length first: Python takes quadratic time for a number of many digits.
    is_number = len(digits) <= 19 and digits.isascii() and digits.isdigit()
    return is_number and int(digits) < 2**63


def write_entries(stream: TextIO, coordinates: Iterable[Array], values: Array | None) -> None:
    """Write a line for each entry: its coordinates from 1 on, and its value, from which the same bits are
    read. NaN loses its payload."""
    columns = list(coordinates)
    count = columns[0].size
    for start in range(0, count, _ENTRIES_WRITTEN):
        part = slice(start, start + _ENTRIES_WRITTEN)
        fields = [map(str, (array[part].astype("int64") + 1).tolist()) for array in columns]
        if values is not None:
            fields.append(map(_number_text(values), values[part].tolist()))
        stream.write("".join(f"{' '.join(line)}\n" for line in zip(*fields, strict=True)))


def _number_text(values: Array) -> Callable[[float], str]:
    # Nine digits identify a float32, also if they are read as float64 first; `repr` has up to 17.
    return repr if values.dtype.itemsize == 8 else "{:.9g}".format
