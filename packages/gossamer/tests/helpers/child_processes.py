"""Programs that run in processes of their own, with the modules of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(source, *, tmp_path, **environment):
    """Runs a program that may import `race_setup`; it must succeed and print nothing."""
    program = tmp_path / "program.py"
    program.write_text(source)
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # pytest shows no values for an assertion of a helper.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
