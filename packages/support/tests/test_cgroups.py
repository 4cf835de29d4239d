"""The cgroups of a process: both versions, ancestors, containers, malformed files."""

from __future__ import annotations

import pytest

from gossamer_support.cgroups import control_groups

V2, V1 = "0::/a/b\n", "5:memory:/m\n4:cpu,cpuacct:/a\n"
GROUPS = {
    "v2 with ancestors": (V2, [], [("", True), ("a", True), ("a/b", True)]),
    "v2 of a container": ("0::/../../a\n", [], [("", True), ("a", True)]),
    "v1": (V1, ["cpu,cpuacct"], [("cpu,cpuacct", False), ("cpu,cpuacct/a", False)]),
    "v1 linked by one name": (V1, ["cpu"], [("cpu", False), ("cpu/a", False)]),
    "v1 not mounted": ("4:cpu:/\n", [], [("cpu", False)]),
    "another controller": ("5:memory:/m\n", [], []),
    "malformed": ("0:x\nnonsense\n", [], []),
}


@pytest.mark.parametrize("case", GROUPS)
def test_groups_and_their_ancestors(case, tmp_path):
    lines, folders, expected = GROUPS[case]
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(lines)
    for folder in folders:
        (tmp_path / folder).mkdir()
    groups = control_groups("cpu", proc=tmp_path / "proc", cgroups=tmp_path)
    assert [(group.path, group.is_v2) for group in groups] == [
        (tmp_path / path, is_v2) for path, is_v2 in expected
    ]


def test_a_system_without_cgroups_has_none(tmp_path):
    assert list(control_groups("cpu", proc=tmp_path)) == []
