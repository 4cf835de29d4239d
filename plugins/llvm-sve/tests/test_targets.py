"""The options of targets, and code for them on any machine."""

import pytest

from gossamer_backend import Artifact
from gossamer_emulation.driver import program
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Signature, Target
from gossamer_llvm_sve.backend import ScalableBackend
from gossamer_llvm_sve.machine import cpu_of, machine_of_cpu
from gossamer_llvm_sve.vector_extension import EXTENSIONS

BACKENDS = {name: ScalableBackend(extension) for name, extension in EXTENSIONS.items()}
LOOP = ("for i in T.serial(n):", "    Y[i] = X[i] * 2.0")


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("llvm-sve:speed=high", "scalable_cpu.option"),
        ("llvm-sve:cpu=z80", "scalable_cpu.option_value"),
        ("llvm-sve:features=avx", "scalable_cpu.option_value"),
        ("llvm-sve:features=sve2+", "scalable_cpu.option_value"),
        ("llvm-sve:min_vector_bits=384", "scalable_cpu.option_value"),
        ("llvm-sve:vector_bits=4096", "scalable_cpu.option_value"),
        ("llvm-sve:l2=large", "scalable_cpu.option_value"),
        ("llvm-sve:min_vector_bits=512,vector_bits=256", "scalable_cpu.vector_bits"),
        ("llvm-sve:streaming_bits=256", "scalable_cpu.streaming_bits"),
        ("llvm-sve:min_streaming_bits=256", "scalable_cpu.streaming_bits"),
        ("llvm-sve:features=sme,min_streaming_bits=64", "scalable_cpu.option_value"),
        ("llvm-rvv:min_streaming_bits=256", "scalable_cpu.option"),
        ("llvm-sve:features=sme,streaming_bits=384", "scalable_cpu.option_value"),
        ("llvm-rvv:cpu=neoverse-v1", "scalable_cpu.option_value"),
        ("llvm-rvv:features=sve", "scalable_cpu.option_value"),
        ("llvm-rvv:vector_bits=2048", "scalable_cpu.option_value"),
        ("llvm-rvv:cpu=sifive-x280,min_vector_bits=256", "scalable_cpu.option_value"),
    ],
)
def test_refused_targets(target, code, flat):
    parsed = Target.parse(target)
    backend = BACKENDS[parsed.backend]
    with pytest.raises(ArgumentError) as caught:
        backend.compile(flat(*LOOP), parsed)
    assert caught.value.code == code
    probe = backend.probe(parsed)
    assert not probe.is_usable
    assert caught.value.diagnostics[0].message in probe.reason


@pytest.mark.parametrize(
    ("options", "expected"),
    [("", 256), (",streaming_bits=128", 128), (",streaming_bits=1024", 1024),
     (",streaming_bits=1024,min_streaming_bits=128", 128), (",vector_bits=128", 256)],
)  # fmt: skip
def test_schedules_expect_the_streaming_vectors_that_a_target_states(options, expected):
    target = Target.parse(f"llvm-sve:features=sme{options}")
    assert machine_of_cpu(target).min_product_bits == expected
    resolved = BACKENDS["llvm-sve"].probe(target).resolved
    assert f"min_streaming_bits={expected}" in resolved


def test_a_cpu_has_its_features_and_vectors():
    cpu = cpu_of(Target.parse("llvm-sve:cpu=a64fx,features=sme+sve2"))
    assert (cpu.features, cpu.vector_bits) == (("sve", "sve2", "sme"), 512)
    assert cpu_of(Target.parse("llvm-sve:min_vector_bits=1024")).vector_bits == 1024
    streaming = cpu_of(Target.parse("llvm-sve:features=sme,streaming_bits=512"))
    assert (streaming.vector_bits, streaming.streaming_bits) == (128, 512)


def test_code_for_a_cpu_of_riscv_may_rely_on_its_vectors():
    target = Target.parse("llvm-rvv:cpu=sifive-x280")
    cpu, machine = cpu_of(target), machine_of_cpu(target)
    assert (cpu.min_vector_bits, cpu.vector_bits) == (512, 512)
    assert (machine.min_vector_bits, machine.is_scalable, machine.fixed_vscale) == (
        512,
        True,
        None,
    )


@pytest.mark.parametrize(
    ("target", "lengths"),
    [
        ("llvm-sve:min_vector_bits=256", "vscale_range(2,16)"),
        # LLVM's vscale counts units of 64 bits there.
        ("llvm-rvv", "vscale_range(2,1024)"),
        ("llvm-rvv:min_vector_bits=256", "vscale_range(4,1024)"),
    ],
)
def test_the_code_states_the_lengths_of_vectors(target, lengths, flat):
    parsed = Target.parse(target)
    text = BACKENDS[parsed.backend].texts(flat(*LOOP), parsed)["llvm"]
    assert lengths in text
    assert "ptr noalias" in text


SVE_FEATURES = ("sve", "sve2", "sme", "sve2+sme")
RVV_FEATURES = ("v", "zvfh", "zba+zbb+zbs")
RVV_CPUS = [model.name for model in EXTENSIONS["llvm-rvv"].cpus]


@pytest.mark.parametrize(
    ("target", "machine"),
    [
        *((f"llvm-sve:features={features}", 183) for features in SVE_FEATURES),
        *((f"llvm-rvv:features={features}", 243) for features in RVV_FEATURES),
        *((f"llvm-rvv:cpu={cpu}", 243) for cpu in RVV_CPUS),
        ("llvm-rvv:min_vector_bits=1024", 243),
    ],
)
def test_object_code_is_made_for_all_features(target, machine, flat):
    parsed = Target.parse(target)
    artifact = BACKENDS[parsed.backend].compile(flat(*LOOP), parsed)
    assert artifact.code[:4] == b"\x7fELF"
    assert artifact.code[18:20] == machine.to_bytes(2, "little")  # EM_AARCH64, EM_RISCV


def artifact_of(backend):
    return Artifact(backend, "", backend, Signature("f", (), (), ()), b"")


@pytest.mark.parametrize(("name", "machine"), [("llvm-sve", "aarch64"), ("llvm-rvv", "riscv64")])
def test_programs_that_are_absent_are_named_with_their_packages(name, machine, monkeypatch):
    if EXTENSIONS[name].is_native:
        pytest.skip("this machine runs the code without an emulator")
    monkeypatch.setattr(program.shutil, "which", lambda name: None)
    with pytest.raises(ArgumentError, match=f"qemu-user-static gcc-{machine}-linux") as caught:
        BACKENDS[name].load(artifact_of(name))
    assert caught.value.code == "emulation.programs"
    assert f"qemu-{machine}-static" in BACKENDS[name].probe(Target(name)).reason


@pytest.mark.parametrize("target", ["llvm-sve:threads=0", "llvm-rvv:threads=many"])
def test_a_number_of_threads_is_checked_on_all_machines(target, flat):
    backend = BACKENDS[Target.parse(target).backend]
    with pytest.raises(ArgumentError) as caught:
        backend.compile(flat(*LOOP), Target.parse(target))
    assert caught.value.code == "threads.count"
    assert not backend.probe(Target.parse(target)).is_usable


@pytest.mark.parametrize("name", BACKENDS)
def test_the_number_of_threads_is_part_of_the_resolved_target(name):
    resolved = BACKENDS[name].probe(Target.parse(f"{name}:threads=2")).resolved
    assert Target.parse(resolved).option("threads") == "2"
