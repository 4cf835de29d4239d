"""`gossamer demo`."""

from __future__ import annotations

import pytest
import typer

from gossamer.cli.commands.run import require_within
from gossamer.cli.comparison.accuracy import Comparison


def test_a_failed_check_is_exit_code_1(capsys):
    require_within(Comparison(1e-9, 1e-6, is_within=True))
    with pytest.raises(typer.Exit) as caught:
        require_within(Comparison(0.5, 1e-6, is_within=False))
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err.startswith("check failed: the largest error is 0.5 of a sum's ")


def test_the_demo_runs_on_a_file(command, matrix_file):
    output = command("demo", "--matrix", matrix_file, "--features", "8", "--threads", "1")
    assert (output.status, output.err) == (0, "")
    assert "T.sp.iteration" in output.out
    assert output.out.count(", right") == 2
    program = ("@", "    ", matrix_file)
    beside = [line for line in output.out.splitlines() if not line.startswith(program)]
    assert [line for line in beside if len(line) > 80] == []
    assert "SciPy / gossamer" in output.out
