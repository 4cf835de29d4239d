"""Programs over CSR with schedules in scalable vectors, emulated at every vector length of Arm SVE."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.cli import main
from gossamer.pipeline import stage_texts
from gossamer_ir.errors import UserError
from gossamer_ir.interchange.records import Schedule
from tests.support.scalable_programs import BUILDERS, operands, spmm

pytestmark = pytest.mark.unserialized

LANES = "4 * T.vscale()"


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("bits", [128, 256, 512, 1024, 2048])
@pytest.mark.parametrize("name", BUILDERS)
def test_products_are_right_at_every_vector_length(name, bits):
    builder = BUILDERS[name](LANES)
    target = f"llvm-sve:vector_bits={bits}"
    kernel = gs.compile(builder.program, schedule=builder, target=target)
    lanes = bits // 32
    for size in (0, 1, lanes - 1, lanes, lanes + 1, 37, 115):
        arguments, expected = operands(name, size)
        kernel(**arguments)
        np.testing.assert_array_equal(arguments["c"], expected, err_msg=str(size))


@pytest.mark.parametrize(
    ("name", "instructions"),
    [
        ("spmv", (r"whilelo\tp\d+\.s", r"ld1w\t\{ z\d+\.s \}, p\d+/z, \[x\d+, z\d+\.s, [us]xtw #2\]",
                  r"fmla\tz\d+\.s, p\d+/m")),
        ("spmm", (r"whilelo\tp\d+\.s", r"fm(la|ad)\tz\d+\.s, p\d+/m")),
    ],
)  # fmt: skip
def test_the_assembly_has_predicated_vectors_and_no_scalar_remainder(name, instructions):
    builder = BUILDERS[name](LANES)
    schedule = Schedule(loop=builder.trace)
    text = stage_texts(builder.program, schedule=schedule, target="llvm-sve")["asm"]
    for instruction in instructions:
        assert re.search(instruction, text), instruction
    # A scalar loop would multiply and add in scalar registers.
    assert not re.search(r"fmadd\ts|fmul\ts", text)


def test_export_needs_no_emulator(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    builder = spmm(LANES)
    files = gs.export(builder.program, tmp_path, schedule=builder, target="llvm-sve")
    assert files.object.read_bytes()[18:20] == (183).to_bytes(2, "little")  # EM_AARCH64


def test_explain_shows_the_schedule_for_a_target():
    report = gs.explain("spmm", target="llvm-sve:cpu=neoverse-v1", specialize={"feat_size": 64})
    assert "8 lanes" in report.decisions[1].what


@pytest.fixture
def threads():
    """Restores the number of threads."""
    before = gs.get_num_threads()
    yield
    gs.set_num_threads(before)


@pytest.mark.usefixtures("emulated", "threads")
def test_run_says_that_it_emulates(tmp_path, capsys):
    path = tmp_path / "a.npz"
    sparse.save_npz(path, sparse.random_array((30, 40), density=0.2, format="csr", dtype="f4"))
    arguments = ["run", "spmm", "--matrix", str(path), "--repeat", "1", "--check", "--threads", "2"]
    assert main([*arguments, "--features", "20", "--target", "llvm-sve:vector_bits=512"]) == 0
    printed = capsys.readouterr().out
    assert (
        "on        1 thread, llvm-sve:vector_bits=512, emulated by qemu-aarch64-static" in printed
    )
    assert "within the rounding" in printed


def test_a_wrong_option_is_an_error():
    with pytest.raises(UserError, match="'rows' is not an option of llvm-sve"):
        gs.compile(spmm(LANES).program, target="llvm-sve:rows=4")
