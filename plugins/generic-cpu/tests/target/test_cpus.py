"""Targets: options, other CPUs, errors, artifacts, and properties of the machine code."""

import re

import numpy as np
import pytest

from gossamer_backend import Artifact, Backend
from gossamer_backend.plugin_api import available_cpus
from gossamer_generic_cpu import plugin
from gossamer_generic_cpu.backend import GenericCpu
from gossamer_generic_cpu.codegen.compiler import assembly, llvm_text
from gossamer_generic_cpu.target.cpus import cpu_names
from gossamer_host_runtime import architecture
from gossamer_ir.core.build import index, index_var
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Buffer, Call, For, Load, Store
from gossamer_ir.script import parse_module
from gossamer_machine.cpu_options import GATHER_SPEEDS

HOST = Target.parse("generic-cpu")
GATHER = """
@T.prim_func
def gather(x: T.handle, p: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    P = T.match_buffer(p, (8,), "int32")
    Y = T.match_buffer(y, (8,), "float32")
    T.assume(in_range(P, 0, n))
    Y[T.ramp(0, 1, 8)] = X[T.cast(P[T.ramp(0, 1, 8)], "int64x8")]
"""
ON_X86 = pytest.mark.skipif(architecture() != "x86_64", reason="names CPUs of x86-64")


def test_is_a_backend_and_registers_one():
    assert isinstance(GenericCpu(), Backend)
    assert [backend.name for backend in plugin.gossamer_backends()] == ["generic-cpu"]


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("generic-cpu:cpu=z80", "generic_cpu.cpu"),
        ("generic-cpu:speed=high", "generic_cpu.option"),
        ("generic-cpu:vector_bits=100", "generic_cpu.option_value"),
        ("generic-cpu:l2=large", "generic_cpu.option_value"),
        ("generic-cpu:l3=0", "generic_cpu.option_value"),
        ("generic-cpu:gathers=maybe", "generic_cpu.option_value"),
        ("generic-cpu:vscale=3", "generic_cpu.option_value"),
        ("generic-cpu:threads=0", "threads.count"),
        ("generic-cpu:threads=many", "threads.count"),
        ("generic-cpu:features=host-000", "generic_cpu.features"),
    ],
)
def test_refused_targets(spmm, target, code):
    backend = GenericCpu()
    with pytest.raises(ArgumentError) as caught:
        backend.compile(spmm(16), Target.parse(target))
    assert caught.value.code == code
    assert not backend.probe(Target.parse(target)).is_usable


def test_offered_targets_are_known():
    backend = GenericCpu()
    assert backend.targets()[0] == "generic-cpu"
    assert backend.probe(HOST).is_usable


def test_resolved_target_tells_machines_apart_and_compiles_alike(spmm):
    backend = GenericCpu()
    resolved = Target.parse(backend.probe(HOST).resolved)
    assert resolved.option("features").startswith("host-")
    assert resolved.option("vector_bits") in ("128", "256", "512")
    assert resolved.option("gathers") in GATHER_SPEEDS
    assert int(resolved.option("cores")) == available_cpus()
    assert backend.compile(spmm(16), resolved).code == backend.compile(spmm(16), HOST).code


def test_given_options_of_the_machine_stay():
    text = "generic-cpu:vector_bits=128,l2=4096,l3=8192,gathers=slow,cores=7"
    resolved = Target.parse(GenericCpu().probe(Target.parse(text)).resolved)
    names = ("vector_bits", "l2", "l3", "gathers", "cores")
    assert [resolved.option(name) for name in names] == ["128", "4096", "8192", "slow", "7"]


@pytest.mark.parametrize(("gathers", "count"), [("fast", 1), ("moderate", 0), ("slow", 0)])
def test_few_lanes_are_gathered_by_an_instruction_where_gathers_are_fast(gathers, count):
    text = llvm_text(parse_module(GATHER), Target.parse(f"generic-cpu:gathers={gathers}"))
    assert text.count("= call <8 x float> @llvm.masked.gather") == count


@ON_X86
@pytest.mark.parametrize("cpu", cpu_names(HOST))
def test_every_named_cpu_compiles_and_runs_or_is_refused(spmm, random_csr, dense_of, cpu):
    backend = GenericCpu()
    target = Target.parse(f"generic-cpu:cpu={cpu}")
    artifact = backend.compile(spmm(20), target)
    if not backend.probe(target).is_usable:
        with pytest.raises(ArgumentError) as caught:
            backend.load(artifact)
        assert caught.value.code == "generic_cpu.load"
        return
    csr, result = random_csr(20, 30), np.zeros((20, 20), np.float32)
    dense = np.ones((30, 20), np.float32)
    backend.load(artifact)(*csr, dense, result)
    assert np.array_equal(result, dense_of(csr, 30) @ dense)


@ON_X86
def test_code_for_missing_features_is_refused(spmm):
    made = GenericCpu().compile(spmm(16), Target.parse(GenericCpu().targets()[1]))
    entries = dict(made.metadata)
    entries["features"] += " avx4096f"
    altered = Artifact(made.backend, made.backend_version, made.target, made.signature, made.code,
                       made.bounds_checked_buffers, tuple(entries.items()))  # fmt: skip
    with pytest.raises(ArgumentError, match="avx4096f"):
        GenericCpu().load(altered)


def test_bytes_that_are_no_object_are_refused(spmm):
    made = GenericCpu().compile(spmm(16), HOST)
    broken = Artifact(made.backend, made.backend_version, made.target, made.signature, b"\x7fELF",
                      made.bounds_checked_buffers, made.metadata)  # fmt: skip
    with pytest.raises(ArgumentError) as caught:
        GenericCpu().load(broken)
    assert caught.value.code == "host_runtime.object"


def test_artifact_survives_encoding(spmm, random_csr, dense_of):
    made = GenericCpu().compile(spmm(16, guarded=True), HOST)
    assert made.bounds_checked_buffers == ("B",)
    kernel = GenericCpu().load(Artifact.decode(made.encode()))
    csr, result = random_csr(20, 30), np.zeros((20, 16), np.float32)
    kernel(*csr, np.ones((30, 16), np.float32), result)
    assert np.array_equal(result, dense_of(csr, 30) @ np.ones((30, 16)))


@ON_X86
def test_functions_that_would_become_library_calls_are_refused(serial):
    n, i = index_var("n"), index_var("i")
    x = Buffer("X", (n,), "float32", "x")
    for name, arity in (("floor", 1), ("fma", 3)):
        call = Call(name, (Load("X", (i,), "float32"),) * arity, "float32")
        module = serial([For("i", index(0), n, (Store("X", (i,), call),))],
                        buffers=(x,), scalars=[("n", "int64")])  # fmt: skip
        with pytest.raises(UnsupportedError) as caught:
            GenericCpu().compile(module, Target.parse("generic-cpu:cpu=x86-64"))
        assert caught.value.code == f"llvm.call.{name}"
        GenericCpu().compile(module, Target.parse("generic-cpu:cpu=x86-64-v3"))


@ON_X86
def test_spmm_keeps_its_accumulators_in_registers(spmm):
    """K = 128: eight 512-bit accumulators, loads of B folded, no spills. The address of a row of B is in one
    register: with two, a processor splits the instruction."""
    text = assembly(spmm(128), Target.parse("generic-cpu:cpu=skylake-avx512"))
    loops = [block for block in re.split(r"\n\.LBB", text) if "vfmadd" in block]
    assert len(loops) == 1
    assert len(re.findall(r"vfmadd231ps\t\d*\(%r\w+\), %zmm\d+, %zmm\d+", loops[0])) == 8
    assert loops[0].count("vbroadcastss") == 1
    assert "prefetcht0" in loops[0]
    assert not re.search(r"zmm\d+, -?\d*\(%rsp\)|\(%rsp\), %zmm", text)


@ON_X86
def test_spmv_gathers_with_narrow_indices(spmv):
    text = assembly(spmv(), Target.parse("generic-cpu:cpu=skylake-avx512"))
    assert re.search(r"vgatherdps\t\(%r\w+,%zmm\d+,4\), %zmm\d+ \{%k\d\}", text)


def test_text_is_that_of_the_module(spmm):
    text = llvm_text(spmm(16), HOST)
    assert text.count("define i64 @gossamer_kernel(") == 1
