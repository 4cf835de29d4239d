"""The command line as a whole: help, versions, streams and exit codes."""

from __future__ import annotations

import os
import pkgutil
import re
import subprocess
import sys
from importlib import metadata

import pytest

from gossamer.cli import commands
from gossamer.cli.app import app


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_output_that_cannot_be_written_is_one_sentence():
    script = os.path.join(os.path.dirname(sys.executable), "gossamer")
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [script, "show", "spmm", "--stage", "flat"], stdout=full, stderr=-1, text=True
        )
    assert process.returncode == 2
    assert process.stderr == "error: The output cannot be written: No space left on device.\n"


COMMANDS = {registered.name for registered in (*app.registered_commands, *app.registered_groups)}


def test_help_names_every_command(command):
    output = command("--help")
    assert output.status == 0
    for name in (*COMMANDS, "--version"):
        assert name in output.out


def test_every_command_is_registered():
    """A command is in a file of its name."""
    assert {info.name for info in pkgutil.iter_modules(commands.__path__)} == COMMANDS


def test_version_lists_every_distribution_of_gossamer_with_its_version(command):
    output = command("--version")
    assert (output.status, output.err) == (0, "")
    first, *others = output.out.splitlines()
    assert first == f"gossamer {metadata.version('gossamer')}"
    listed = dict(line.split() for line in others)
    required = [re.split(r"[=<> ;]", text)[0] for text in metadata.requires("gossamer")]
    distributions = [name for name in required if name.startswith("gossamer-")]
    assert "gossamer-generic-cpu" in distributions, "the embedded plugin is listed, too"
    assert {name: listed.get(name) for name in distributions} == {
        name: metadata.version(name) for name in distributions
    }


@pytest.mark.parametrize("group", ["plugins", "extensions", "formats", "operators"])
def test_version_lists_a_plugin_of_any_kind_and_name(group, tmp_path, command, monkeypatch):
    folder = tmp_path / "acme-2.5.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 2.5\n")
    (folder / "entry_points.txt").write_text(f"[gossamer.{group}]\nacme = acme\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    listed = [line.split() for line in command("--version").out.splitlines()]
    assert ["acme", "2.5"] in listed
    assert [name for name, _ in listed].count("gossamer") == 1


def test_the_installed_script_fails_without_a_traceback():
    script = os.path.join(os.path.dirname(sys.executable), "gossamer")
    process = subprocess.run(
        [script, "run", "spmm", "--matrix", "none.npz"], capture_output=True, text=True
    )
    assert process.returncode == 2
    assert process.stderr.startswith("error: 'none.npz' does not exist")
    assert "Traceback" not in process.stderr
