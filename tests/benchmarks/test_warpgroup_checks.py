"""The checks of instructions of warpgroups, in the interpreter of PTX."""

from __future__ import annotations

import json

import pytest

from benchmarks import __main__
from benchmarks.gpu import warpgroup_checks
from benchmarks.gpu.instruction_checks import device_of
from benchmarks.gpu.warpgroup_checks import check_uses, checked_uses, use_name, wrong_sums
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.interchange.records import Target

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

TARGET = "cuda-mma-sp:arch=sm_90a,driver=interpreter"
GPU = gpu_of(Target.parse(TARGET))
FORMS = {
    (
        use.instruction.a,
        use.instruction.b,
        use.instruction.accumulator,
        use.a_is_shared,
        use.a_is_by_k,
        use.b_is_by_k,
        use.selector,
    ): number
    for number, use in enumerate(checked_uses(GPU))
    # Others have more columns only; spans of 16 and 32 bytes are those of these.
    if use.instruction.columns in (8, 16)
}
"""The number of an instruction for each combination of dtypes, place of A, orders, and selector."""


def test_every_instruction_is_checked_in_all_of_its_ways():
    uses = checked_uses(GPU)
    assert len({use.instruction.ptx_name for use in uses}) == 528
    assert len({use_name(use) for use in uses}) == len(uses) == 2080
    assert checked_uses(gpu_of(Target.parse("cuda-mma-sp:arch=sm_90"))) == ()


@pytest.mark.parametrize("number", sorted(FORMS.values()))
def test_small_integers_are_multiplied_exactly(number):
    use = checked_uses(GPU)[number]
    assert wrong_sums(use, GPU, device_of(GPU), seed=number) is None


@pytest.mark.parametrize("columns", [72, 96, 256])
def test_rows_of_several_spans_are_read(columns):
    chosen = [use for use in checked_uses(GPU) if use.instruction.columns == columns]
    for use in (chosen[0], chosen[3], chosen[-1]):
        assert wrong_sums(use, GPU, device_of(GPU), seed=columns) is None


def test_a_wrong_sum_is_reported(monkeypatch, capsys):
    right = warpgroup_checks.warpgroup_kernels_ptx

    def negative(uses, gpu):
        """The product, subtracted."""
        return right(uses, gpu).replace("is_added, 1, 1", "is_added, -1, 1")

    monkeypatch.setattr(warpgroup_checks, "warpgroup_kernels_ptx", negative)
    check_uses(TARGET, 0, 1)
    row = json.loads(capsys.readouterr().out)
    assert row["name"] == use_name(checked_uses(GPU)[0])
    assert "of 512 sums are wrong: that of row" in row["wrong"]


def test_the_command_checks_them(tmp_path):
    words = f"gpu --target {TARGET} --instructions 0 --warpgroups 3 --programs 0 --conformance 0 --fuzzed 0"
    chosen = "--op --matrix --calls 1 --contenders gossamer"
    status = __main__.main([*words.split(), *chosen.split(), "--output", str(tmp_path)])
    (path,) = tmp_path.glob("gpu/*.json")
    checks = json.loads(path.read_text())["checks"]
    assert [(check["suite"], check["outcome"]) for check in checks] == [
        ("warpgroups", "correct")
    ] * 3
    assert status == 0
