"""The description of the machine that a run was measured on."""

from __future__ import annotations

import pytest

from benchmarks.machine import machine_description

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


def test_the_processor_is_named_with_its_model(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text(
        "cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\nmodel name\t: other\n"
    )
    assert machine_description.cpu_name(info) == "AMD EPYC (family 26, model 2)"
    assert machine_description.vendor_name(info) == "unknown vendor"
    info.write_text("vendor_id\t: AuthenticAMD\n" + info.read_text())
    assert machine_description.vendor_name(info) == "AMD"
    assert machine_description.cpu_fields(tmp_path / "absent") == {}


def test_caches_count_as_far_as_they_are_ours(tmp_path, monkeypatch):
    facts = {
        "index0": ("1", "48K", "0"),
        "index2": ("2", "1024K", "0"),
        "index3": ("3", "32M", "0-3"),
    }
    for name, (level, size, sharing) in facts.items():
        (tmp_path / name).mkdir()
        for part, text in (("level", level), ("size", size), ("shared_cpu_list", sharing)):
            (tmp_path / name / part).write_text(text + "\n")
        (tmp_path / name / "type").write_text("Unified\n")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    assert machine_description.cache_share(1, tmp_path) == (1 << 20) + (16 << 20)
    assert machine_description.cache_share(2, tmp_path) == (2 << 20) + (16 << 20)
    assert machine_description.caches(tmp_path)["L3 Unified"] == "32M"
