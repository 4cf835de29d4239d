"""Lines of text files: blocks of them, the reasons why one is not an entry, and entries that are written."""

from __future__ import annotations

import io

import numpy as np
import pytest

from gossamer_formats.io import text_streams
from gossamer_formats.io.text_streams import entry_problem, line_blocks, write_entries


def lines_of(text, **options):
    blocks = [*line_blocks(io.StringIO(text), **options)]
    return [line for block in blocks for line in block.lines], [block.first for block in blocks]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_lines_are_whole_whatever_the_size_of_blocks(size, monkeypatch):
    monkeypatch.setattr(text_streams, "_BLOCK_CHARACTERS", size)
    text = "1 2 3.5\n\n% a comment\n4 5 6"
    lines, firsts = lines_of(text)
    assert lines == text.split("\n")
    assert firsts[0] == 1
    assert firsts == sorted(firsts)


def test_a_line_that_does_not_end_is_refused(monkeypatch):
    monkeypatch.setattr(text_streams, "_BLOCK_CHARACTERS", 8)
    monkeypatch.setattr(text_streams, "MAX_LINE_LENGTH", 16)
    with pytest.raises(ValueError, match="line 2 has more than 16 characters"):
        lines_of("1 1\n" + "9" * 40)


PROBLEMS = {
    "1 2": "2 numbers; expected 2 coordinates and a value",
    "": "0 numbers",
    "1 2 3 4": "4 numbers",
    "1.5 2 3": "the coordinate '1.5'; expected an integer below 2**63",
    "9223372036854775808 2 3": "the coordinate '9223372036854775808'",
    "\u0661 2 3": "the coordinate '\u0661'",
    "+1 2 3": "the coordinate '+1'",
    "1 2 x": "the value 'x'; expected a number",
}


@pytest.mark.parametrize("line", PROBLEMS)
def test_a_line_that_is_not_an_entry_has_a_reason(line):
    assert PROBLEMS[line] in entry_problem(line, coordinates=2)


@pytest.mark.parametrize("line", ["1 2 3", " 1\t-2  1e-3 ", "9223372036854775807 2 nan"])
def test_an_entry_has_no_problem(line):
    assert entry_problem(line, coordinates=2) is None


def test_a_pattern_has_no_values():
    assert entry_problem("1 2", coordinates=2, has_value=False) is None
    assert "expected 2 coordinates" in entry_problem("1 2 3", coordinates=2, has_value=False)


def test_long_numbers_are_quoted_in_part_and_refused_in_no_time():
    problem = entry_problem("7" * 10**6 + " 2 3", coordinates=2)
    assert len(problem) < 200


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_are_read_back_with_the_same_bits(dtype):
    values = np.array([0.1, 1 / 3, -0.0, np.inf, np.finfo(dtype).tiny, 2.0**70], dtype)
    rows = np.arange(6, dtype=np.int32)
    stream = io.StringIO()
    write_entries(stream, [rows, rows[::-1]], values)
    fields = [line.split() for line in stream.getvalue().splitlines()]
    assert [int(row) for row, *_ in fields] == [1, 2, 3, 4, 5, 6]
    written = np.array([float(value) for *_, value in fields]).astype(dtype)
    assert written.tobytes() == values.tobytes()


def test_a_pattern_is_written_without_values():
    stream = io.StringIO()
    write_entries(stream, [np.array([0]), np.array([2])], None)
    assert stream.getvalue() == "1 3\n"
