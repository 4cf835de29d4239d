"""`gossamer formats` draws every format with the arrays of one matrix."""

from typer.testing import CliRunner

from gossamer.cli.app import app
from gossamer_formats import format_names


def test_every_format_is_listed_with_its_arrays():
    result = CliRunner().invoke(app, ["formats"])
    assert result.exit_code == 0
    drawn, *listed = result.stdout.split("\n\n")
    assert drawn.splitlines()[0].split() == ["a", ".", ".", ".", "b", "."]
    assert [text.partition(":")[0] for text in listed] == format_names()
    by_name = {text.partition(":")[0]: text.splitlines()[1:] for text in listed}
    assert [line.split() for line in by_name["csr"]] == [
        ["indices", "0", "4", "0", "5", "2"],
        ["indptr", "0", "2", "4", "4", "5"],
        ["data", "a", "b", "c", "d", "e"],
    ]
    assert by_name["bsr"][0].split() == ["parameters", "block_rows,", "block_columns"]
    assert by_name["ell"][-1].split() == ["data", "a", "b", "c", "d", ".", ".", "e", "."]
