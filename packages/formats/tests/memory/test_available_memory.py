"""The memory that a process may allocate, with cgroups of both versions and without."""

from __future__ import annotations

import os

import pytest

from gossamer_formats.memory.available_memory import available_memory


def group(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{content}\n")


V1 = ("memory_limit_in_bytes", "memory_usage_in_bytes", "total_inactive_file")
V2 = ("memory_max", "memory_current", "inactive_file")


@pytest.mark.parametrize(
    ("line", "folder", "names"),
    [
        ("0::/a/b", "a", V2),
        ("0::/a/b", "a/b", V2),
        ("0::/", "", V2),
        ("0::/../of/the/host", "", V2),
        ("4:cpu,memory:/a", "memory/a", V1),
        ("4:memory:/docker/0", "memory", V1),
    ],
)
def test_the_memory_of_a_cgroup_is_what_its_limit_leaves(line, folder, names, tmp_path):
    limit, usage, cached = names
    group(tmp_path / "proc" / "self", cgroup=f"12:cpuset:/x\n{line}")
    group(tmp_path / "groups" / folder, **{limit: 9000, usage: 5000})
    group(tmp_path / "groups" / folder, memory_stat=f"anon 1\n{cached} 600")
    memory = available_memory(proc=tmp_path / "proc", cgroups=tmp_path / "groups")
    assert memory == 9000 - 5000 + 600


def test_cgroups_without_limits_leave_what_the_machine_has(tmp_path):
    group(tmp_path / "proc" / "self", cgroup="0::/a")
    group(tmp_path / "proc", meminfo="MemTotal: 99 kB\nMemAvailable: 70 kB")
    group(tmp_path / "groups" / "a", memory_max="max", memory_current=5)
    group(tmp_path / "groups", memory_max=3, cpu_max=1)
    assert available_memory(proc=tmp_path / "proc", cgroups=tmp_path / "groups") == 70 * 1024
    everything = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < available_memory(proc=tmp_path / "none", cgroups=tmp_path) <= everything


def test_a_full_cgroup_leaves_nothing(tmp_path):
    group(tmp_path / "proc" / "self", cgroup="0::/")
    group(tmp_path / "groups", memory_max=100, memory_current=130)
    assert available_memory(proc=tmp_path / "proc", cgroups=tmp_path / "groups") == 0
