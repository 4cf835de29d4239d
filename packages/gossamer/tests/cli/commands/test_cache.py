"""`gossamer cache`."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def last_object(text):
    return json.loads(text.strip().splitlines()[-1])


def test_the_cache_is_described_and_cleared(command, matrix_file, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "own"))
    assert command("cache", "path").out.strip().startswith(str(tmp_path / "own"))
    assert "entries  0" in command("cache", "info").out
    code = "import sys; from gossamer.cli import main; sys.exit(main())"
    words = ["run", "spmv", "--matrix", matrix_file, "--repeat", "1", "--json"]
    for is_cached in (False, True):
        process = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, env=os.environ
        )
        assert (process.returncode, process.stderr) == (0, "")
        assert last_object(process.stdout)["cached"] is is_cached
    assert "entries  0" not in command("cache", "info").out
    assert command("cache", "clear").out.startswith("removed ")
    assert "entries  0" in command("cache", "info").out
