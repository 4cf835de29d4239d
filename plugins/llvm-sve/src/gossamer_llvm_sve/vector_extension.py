"""The extensions for scalable vectors: a record of each of them, for the backends."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_emulation import AARCH64, RISCV64, Architecture
from gossamer_host_runtime import architecture


class CpuModel(NamedTuple):
    """A CPU by LLVM's name: the bits of its vectors, which `features` of the extension it has, and the least
    bits of vectors on which LLVM's code for it relies. LLVM may use `others` in code for it, features by the
    names of `gossamer_host_runtime`; `rarely_emulated` are those that only a recent emulator has."""

    name: str
    vector_bits: int
    features: tuple[str, ...]
    min_vector_bits: int = 128
    others: frozenset[str] = frozenset()
    rarely_emulated: tuple[str, ...] = ()


class VectorExtension(NamedTuple):
    """An extension of an architecture for scalable vectors.

    >>> RVV.backend, RVV.cpus[0].name, RVV.architecture.name
    ('llvm-rvv', 'generic-rv64', 'riscv64')
    """

    backend: str
    """The name of the backend."""
    architecture: Architecture
    title: str
    """The name of its vectors in messages."""
    cpus: tuple[CpuModel, ...]
    """The CPUs that a target may name: first the default, then one to suggest."""
    features: tuple[str, ...]
    """The features that a target may add to those of its CPU."""
    scopes: tuple[str, ...]
    """The scopes of memory that the backend has."""
    vector_lengths: tuple[int, ...]
    """The bits of vectors that a target may give. The emulator has all of them."""
    max_vector_bits: int
    """The most bits that a vector may have."""
    vscale_bits: int
    """The bits for each unit of LLVM's vscale."""
    has_lane_masks: bool
    """As in `TargetInfo`."""
    has_lane_products: bool
    """As in `TargetInfo`."""
    emulated_cpu: str
    """The emulator's CPU, with places for the length of vectors."""
    half_feature: str | None = None
    """The feature that converts float16; None if every CPU does."""
    base_features: tuple[str, ...] = ()
    """LLVM's features of all targets."""
    length_feature: str | None = None
    """The feature that states the least length, with a place for it; None if there is none."""
    calling_convention: str | None = None
    """LLVM's name of the calling convention; None if there is only one."""

    @property
    def is_native(self) -> bool:
        """True if this process is one of the architecture, so that kernels are loaded into it and not
        emulated."""
        return architecture() == self.architecture.name


_A64FX = frozenset({"crc", "lse", "rdm", "fullfp16", "complxnum"})
_V1 = _A64FX | {
    "jsconv",
    "rcpc",
    "rcpc-immo",
    "dotprod",
    "fp16fml",
    "flagm",
    "lse2",
    "bf16",
    "i8mm",
}
_V2 = _V1 | {"altnzcv", "fptoint"}

SVE = VectorExtension(
    backend="llvm-sve",
    architecture=AARCH64,
    title="SVE",
    cpus=(
        CpuModel("generic", 128, ("sve",)),
        CpuModel("neoverse-v1", 256, ("sve",), others=_V1),
        CpuModel("neoverse-v2", 128, ("sve", "sve2"), others=_V2),
        CpuModel("neoverse-n2", 128, ("sve", "sve2"), others=_V2),
        CpuModel("a64fx", 512, ("sve",), others=_A64FX),
    ),
    features=("sve", "sve2", "sme"),
    scopes=("local", "fragment"),
    # The architecture no longer permits lengths that are not powers of two.
    vector_lengths=(128, 256, 512, 1024, 2048),
    max_vector_bits=2048,
    vscale_bits=128,
    has_lane_masks=True,
    has_lane_products=True,
    # By default, Linux starts processes with vectors of at most 512 bits.
    emulated_cpu="max,sve-max-vq={units},sve-default-vector-length={bytes},"
    "sme-default-vector-length={streaming_bytes}",
)
"""The Scalable Vector Extension of Arm."""

RVV = VectorExtension(
    backend="llvm-rvv",
    architecture=RISCV64,
    title="the extension V",
    cpus=(
        CpuModel("generic-rv64", 128, ("v",)),
        CpuModel("sifive-x280", 512, ("v", "zvfh", "zba", "zbb"), min_vector_bits=512),
        CpuModel("sifive-p670", 128, ("v", "zba", "zbb", "zbs"), rarely_emulated=("zvbb",)),
        CpuModel(
            "spacemit-x60",
            256,
            ("v", "zvfh", "zba", "zbb", "zbs"),
            min_vector_bits=256,
            rarely_emulated=("zicond",),
        ),
    ),
    features=("v", "zvfh", "zba", "zbb", "zbs"),
    scopes=("local",),
    # The architecture permits longer ones, which QEMU 7.2 does not emulate.
    vector_lengths=(128, 256, 512, 1024),
    max_vector_bits=65536,
    vscale_bits=64,
    has_lane_masks=False,
    has_lane_products=False,
    # QEMU 7.2 has the instructions of `zvfh` wherever those of `zfh` are.
    emulated_cpu="rv64,v=true,vext_spec=v1.0,vlen={bits},elen=64,Zfh=true",
    half_feature="zvfh",
    base_features=("m", "a", "f", "d", "c"),
    length_feature="zvl{bits}b",
    calling_convention="lp64d",
)
"""The vector extension of RISC-V, `v`, whose vectors have at least 128 bits."""

EXTENSIONS = {extension.backend: extension for extension in (SVE, RVV)}
"""The extensions by the names of their backends."""
