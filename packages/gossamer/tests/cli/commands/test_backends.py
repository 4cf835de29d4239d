"""`gossamer backends`."""

from __future__ import annotations


def test_backends_lists_the_embedded_one(command):
    output = command("backends")
    assert output.status == 0
    lines = [line.split(maxsplit=1) for line in output.out.splitlines()]
    # Other backends may be installed, too.
    first = lines.index(["generic-cpu"])
    assert lines[first + 1] == ["usable", "yes"]
    assert ["targets", "generic-cpu"] in lines
