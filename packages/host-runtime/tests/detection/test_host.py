"""The CPU of this machine: its digest, its caches and the speed of its gathers."""

import subprocess
import sys

import pytest

from gossamer_backend.plugin_api import available_cpus
from gossamer_host_runtime.detection.caches import MESH_BYTES, cache_bytes, shared_cache_bytes
from gossamer_host_runtime.detection.host import are_gathers_slow, gather_speed, host

VENDORS = {"GenuineIntel": "fast", "AuthenticAMD": "moderate", "": "moderate"}


def test_digest_of_the_host_is_that_of_the_next_process():
    program = "from gossamer_host_runtime import host; print(host().digest)"
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == host().digest
    assert int(host().options["cores"]) == available_cpus()


def written(folder, **files):
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text + "\n")


def test_caches_are_read_by_level_without_that_of_instructions(tmp_path):
    written(tmp_path / "index0", level="1", type="Data", size="48K")
    written(tmp_path / "index1", level="1", type="Instruction", size="64K")
    written(tmp_path / "index2", level="2", type="Unified", size="1280K")
    written(tmp_path / "index3", level="3", type="Unified", size="54M")
    sizes = [cache_bytes(level, tmp_path) for level in (1, 2, 3, 4)]
    assert sizes == [32 << 10, 1 << 20, 32 << 20, 0]


@pytest.mark.parametrize(("size", "counted"), [("300M", MESH_BYTES), ("8M", 8 << 20), ("", 0)])
def test_a_schedule_counts_on_a_part_of_a_mesh(tmp_path, size, counted):
    written(tmp_path / "index3", level="3", type="Unified", size=size)
    assert shared_cache_bytes("GenuineIntel", tmp_path) == counted
    assert shared_cache_bytes("AuthenticAMD", tmp_path) == cache_bytes(3, tmp_path)


@pytest.mark.parametrize("size", ["", "K", "many", "-1K", "0K", "12", "1e3K"])
def test_a_cache_of_unknown_size_is_unknown(tmp_path, size):
    written(tmp_path / "index2", level="2", type="Unified", size=size)
    assert cache_bytes(2, tmp_path) == 0


@pytest.mark.parametrize(
    ("state", "slow"),
    [
        ("Not affected", False),
        ("Vulnerable", False),
        ("Vulnerable: No microcode", False),
        ("Mitigation: Microcode", True),
        ("Unknown: Dependent on hypervisor status", True),
    ],
)
def test_gathers_are_slow_where_their_mitigation_is_active(tmp_path, state, slow):
    written(tmp_path / "of", gds=state)
    assert are_gathers_slow(tmp_path / "of" / "gds") is slow
    assert not are_gathers_slow(tmp_path / "missing")
    speeds = {vendor: gather_speed(vendor, tmp_path / "of" / "gds") for vendor in VENDORS}
    assert speeds == (dict.fromkeys(VENDORS, "slow") if slow else VENDORS)
