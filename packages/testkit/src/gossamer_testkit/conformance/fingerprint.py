"""Digests of artifacts, to compare them between processes."""

from __future__ import annotations

import hashlib

from msgspec.structs import replace

from gossamer_backend import Artifact

COMPARED_PARTS = (
    "backend",
    "backend_version",
    "target",
    "signature",
    "code",
    "bounds_checked_buffers",
)
"""The fields of an artifact that must be deterministic; its metadata may hold times."""


def fingerprint(artifact: Artifact) -> str:
    """Return a digest of the fields that must be deterministic.

    >>> from gossamer_ir.interchange.records import Signature
    >>> first = Artifact("toy", "1.0", "toy", Signature("f", (), (), ()), b"code")
    >>> fingerprint(first) == fingerprint(replace(first, metadata=(("ms", "1"),)))
    True
    >>> fingerprint(first) == fingerprint(replace(first, code=b"other"))
    False
    """
    return hashlib.sha256(replace(artifact, metadata=()).encode()).hexdigest()
