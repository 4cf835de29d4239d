"""The targets whose kernels are emulated: each backend for scalable vectors with each length of vectors."""

from __future__ import annotations

from gossamer_ir.interchange.records import Target

EMULATED_LENGTHS = {
    "llvm-sve": (128, 256, 512, 1024, 2048),
    "llvm-rvv": (128, 256, 512, 1024),
}
"""The lengths of vectors in bits that an emulator has, by the backend."""


def targets_of(backend: str) -> tuple[str, ...]:
    """The targets of a backend, by the length of their vectors."""
    return tuple(f"{backend}:vector_bits={bits}" for bits in EMULATED_LENGTHS[backend])


TARGETS = tuple(target for backend in EMULATED_LENGTHS for target in targets_of(backend))


def bits_of(target: str) -> int:
    """The length of the vectors of a target."""
    return int(Target.parse(target).option("vector_bits"))
