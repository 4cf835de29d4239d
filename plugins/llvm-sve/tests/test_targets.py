"""The options of targets, and code for them on any machine."""

import pytest

from gossamer_backend import Artifact
from gossamer_emulation.driver import program
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Signature, Target
from gossamer_llvm_sve.backend import LlvmSve
from gossamer_llvm_sve.machine import cpu_of
from gossamer_llvm_sve.native import is_native

BACKEND = LlvmSve()
ARTIFACT = Artifact("llvm-sve", "", "llvm-sve", Signature("f", (), (), ()), b"")
LOOP = ("for i in T.serial(n):", "    Y[i] = X[i] * 2.0")


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("llvm-sve:speed=high", "llvm_sve.option"),
        ("llvm-sve:cpu=z80", "llvm_sve.option_value"),
        ("llvm-sve:features=avx", "llvm_sve.option_value"),
        ("llvm-sve:features=sve2+", "llvm_sve.option_value"),
        ("llvm-sve:vl_min=384", "llvm_sve.option_value"),
        ("llvm-sve:vector_bits=4096", "llvm_sve.option_value"),
        ("llvm-sve:l2=large", "llvm_sve.option_value"),
        ("llvm-sve:vl_min=512,vector_bits=256", "llvm_sve.vector_bits"),
        ("llvm-sve:streaming_bits=256", "llvm_sve.streaming_bits"),
        ("llvm-sve:features=sme,streaming_bits=384", "llvm_sve.option_value"),
    ],
)
def test_refused_targets(target, code, flat):
    with pytest.raises(ArgumentError) as caught:
        BACKEND.compile(flat(*LOOP), Target.parse(target))
    assert caught.value.code == code
    probe = BACKEND.probe(Target.parse(target))
    assert not probe.usable
    assert caught.value.diagnostics[0].message in probe.reason


def test_a_cpu_has_its_features_and_vectors():
    found = cpu_of(Target.parse("llvm-sve:cpu=a64fx,features=sme+sve2"))
    assert (found.features, found.vector_bits) == (("sve", "sve2", "sme"), 512)
    assert cpu_of(Target.parse("llvm-sve:vl_min=1024")).vector_bits == 1024
    streaming = cpu_of(Target.parse("llvm-sve:features=sme,streaming_bits=512"))
    assert (streaming.vector_bits, streaming.streaming_bits) == (128, 512)


def test_the_code_states_the_lengths_of_vectors(flat):
    text = BACKEND.texts(flat(*LOOP), Target.parse("llvm-sve:vl_min=256"))["llvm"]
    assert "vscale_range(2,16)" in text
    assert "ptr noalias" in text


@pytest.mark.parametrize("features", ["sve", "sve2", "sme", "sve2+sme"])
def test_object_code_is_made_for_all_features(features, flat):
    artifact = BACKEND.compile(flat(*LOOP), Target.parse(f"llvm-sve:features={features}"))
    assert artifact.code[:4] == b"\x7fELF"
    assert artifact.code[18:20] == (183).to_bytes(2, "little")  # EM_AARCH64


@pytest.mark.skipif(is_native(), reason="this machine runs code of AArch64 without an emulator")
def test_programs_that_are_absent_are_named_with_their_packages(monkeypatch):
    monkeypatch.setattr(program.shutil, "which", lambda name: None)
    with pytest.raises(ArgumentError, match=r"qemu-user-static gcc-aarch64-linux-gnu") as caught:
        BACKEND.load(ARTIFACT)
    assert caught.value.code == "emulation.programs"
    assert "qemu-aarch64-static" in BACKEND.probe(Target("llvm-sve")).reason


@pytest.mark.parametrize("target", ["llvm-sve:threads=0", "llvm-sve:threads=many"])
def test_a_number_of_threads_is_checked_on_all_machines(target, flat):
    with pytest.raises(ArgumentError) as caught:
        BACKEND.compile(flat(*LOOP), Target.parse(target))
    assert caught.value.code == "threads.count"
    assert not BACKEND.probe(Target.parse(target)).usable


def test_the_number_of_threads_is_part_of_the_resolved_target():
    resolved = BACKEND.probe(Target.parse("llvm-sve:threads=2")).resolved
    assert Target.parse(resolved).option("threads") == "2"
