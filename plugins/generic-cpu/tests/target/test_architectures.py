"""Targets for other architectures: options, machines, object code on any machine, and where it runs."""

import re

import pytest

from gossamer_backend import Artifact
from gossamer_emulation.driver import program
from gossamer_generic_cpu.backend import GenericCpu
from gossamer_generic_cpu.target import cpus
from gossamer_generic_cpu.target.cpu_tables import CPU_TABLES
from gossamer_host_runtime import architecture
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Signature, Target

BACKEND = GenericCpu()
NAMES = {"x86-64": "x86_64", "aarch64": "aarch64", "riscv64": "riscv64"}
HERE = next((option for option, name in NAMES.items() if name == architecture()), None)
OTHERS = [name for name in ("aarch64", "riscv64") if name != HERE]
ELF_MACHINES = {"x86-64": 62, "aarch64": 183, "riscv64": 243}


def resolved(text):
    return BACKEND.probe(Target.parse(text)).resolved


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("arch=z80", "generic_cpu.arch"),
        (f"arch={OTHERS[0]},cpu=host", "generic_cpu.cpu"),
        (f"arch={OTHERS[0]},cpu=znver4", "generic_cpu.cpu"),
        (f"arch={OTHERS[0]},features=avx2", "generic_cpu.features"),
        (f"arch={OTHERS[0]},features=host-0123456789ab", "generic_cpu.features"),
        (f"arch={OTHERS[0]},vector_bits=100", "generic_cpu.option_value"),
        (f"arch={OTHERS[0]},threads=none", "threads.count"),
        ("features=avx2", "generic_cpu.features"),
        ("cpu=x86-64,arch=x86-64,features=avx2+", "generic_cpu.features"),
    ],
)
def test_refused_targets(spmm, options, code):
    target = Target.parse(f"generic-cpu:{options}")
    with pytest.raises(ArgumentError) as caught:
        BACKEND.compile(spmm(16), target)
    assert caught.value.code == code
    probe = BACKEND.probe(target)
    assert not probe.is_usable
    assert caught.value.diagnostics[0].message in probe.reason


@pytest.mark.parametrize("name", OTHERS)
def test_a_target_of_another_architecture_is_resolved_to_its_first_cpu(name):
    expected = f"generic-cpu:arch={name},cpu=generic,vector_bits=128"
    assert resolved(f"generic-cpu:arch={name}") == expected
    assert resolved(expected) == expected
    other = Target.parse(resolved(f"generic-cpu:arch={name},l2=4096,vector_bits=256"))
    assert (other.option("l2"), other.option("vector_bits")) == ("4096", "256")


@pytest.mark.skipif(HERE is None, reason="no value of arch= is this architecture")
def test_the_architecture_of_this_machine_is_the_default(spmm):
    assert resolved(f"generic-cpu:arch={HERE}") == resolved("generic-cpu")
    kernel = BACKEND.load(BACKEND.compile(spmm(16), Target.parse(f"generic-cpu:arch={HERE}")))
    assert kernel.emulator is None


@pytest.mark.parametrize(
    ("options", "bits", "registers"),
    [
        ("arch=aarch64,cpu=generic", 128, 32),
        ("arch=riscv64,cpu=generic,features=v", 128, 32),
        ("arch=riscv64,cpu=generic", 128, 8),
        ("arch=riscv64,cpu=generic,vector_bits=256", 256, 4),
        ("arch=x86-64,cpu=x86-64-v3,vector_bits=256", 256, 16),
        ("arch=x86-64,cpu=x86-64-v4,vector_bits=512", 512, 32),
    ],
)
def test_the_machine_has_the_vector_registers_of_its_architecture(options, bits, registers):
    target = Target.parse(f"generic-cpu:{options}")
    machine = BACKEND.machine(Target.parse(BACKEND.probe(target).resolved or target.text))
    assert (machine.min_vector_bits, machine.vector_registers) == (bits, registers)


@pytest.mark.parametrize("name", NAMES)
def test_every_cpu_compiles_on_every_machine(spmm, name):
    for cpu in CPU_TABLES[NAMES[name]].cpus:
        artifact = BACKEND.compile(spmm(16), Target.parse(f"generic-cpu:arch={name},cpu={cpu}"))
        assert artifact.code[18:20] == ELF_MACHINES[name].to_bytes(2, "little")
        assert artifact.metadatum("triple").startswith(NAMES[name])


@pytest.mark.parametrize("name", NAMES)
def test_every_feature_can_be_added(spmm, name):
    table = CPU_TABLES[NAMES[name]]
    text = f"generic-cpu:arch={name},cpu={next(iter(table.cpus))},features="
    for feature in table.optional:
        artifact = BACKEND.compile(spmm(16), Target.parse(text + feature))
        assert feature in artifact.metadatum("features").split()


@pytest.mark.parametrize(
    ("options", "instruction"),
    [
        ("arch=aarch64", r"fmla\tv\d+\.4s"),
        ("arch=riscv64", r"fmadd\.s\tfa"),
        ("arch=riscv64,features=v", r"vfmacc\.v"),
        ("arch=x86-64,cpu=x86-64-v4", r"vfmadd231ps.*zmm"),
    ],
)
def test_the_assembly_is_that_of_the_architecture(spmm, options, instruction):
    text = BACKEND.texts(spmm(16), Target.parse(f"generic-cpu:{options}"))["asm"]
    assert re.search(instruction, text)


@pytest.mark.parametrize("name", OTHERS)
def test_an_emulator_that_is_absent_is_named(name, spmm, monkeypatch):
    monkeypatch.setattr(program.shutil, "which", lambda program: None)
    target = Target.parse(f"generic-cpu:arch={name}")
    assert f"qemu-{name}-static" in BACKEND.probe(target).reason
    with pytest.raises(ArgumentError, match=f"qemu-{name}-static") as caught:
        BACKEND.load(BACKEND.compile(spmm(16), target))
    assert caught.value.code == "emulation.programs"


def test_kernels_for_x86_are_not_emulated(monkeypatch):
    monkeypatch.setattr(cpus, "architecture", lambda: "s390x")
    artifact = Artifact(
        "generic-cpu", "", "generic-cpu:arch=x86-64", Signature("f", (), (), ()), b""
    )
    probe = BACKEND.probe(Target.parse("generic-cpu:arch=x86-64"))
    assert probe.reason == "Only kernels for aarch64 and riscv64 are emulated."
    assert probe.resolved == "generic-cpu:arch=x86-64,cpu=x86-64,vector_bits=128"
    with pytest.raises(ArgumentError) as caught:
        BACKEND.load(artifact)
    assert caught.value.code == "generic_cpu.load"
