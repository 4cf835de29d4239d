"""Artifacts: the result of `compile`, with everything needed to load, call, cache and export it."""

from __future__ import annotations

from functools import cache

import msgspec

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Signature, Target
from gossamer_support.message_texts import amount


class Artifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A compiled flat module. It is plain data: nothing is executed before `Backend.load`.

    >>> from gossamer_ir.interchange.records import Signature
    >>> made = Artifact("toy", "1.0", "toy:cpu=any", Signature("f", (), (), ()), b"code")
    >>> Artifact.decode(made.encode()) == made
    True
    """

    backend: str
    backend_version: str
    target: str
    """The text of the target, with all options explicit."""
    signature: Signature
    code: bytes
    bounds_checked_buffers: tuple[str, ...] = ()
    """The names of the buffers with bounds checks. `failed_buffer` of the workspace is an index into it."""
    metadata: tuple[tuple[str, str], ...] = ()
    """Pairs of text: cpu, features, llvm version, milliseconds of each step, ..."""

    def encode(self) -> bytes:
        """Return the artifact as bytes for `decode`."""
        return _ENCODER.encode(self)

    @staticmethod
    def decode(data: bytes) -> Artifact:
        """Decode the bytes of `encode`; raise `ArgumentError` (`artifact.malformed`) for any others."""
        try:
            return _decoder().decode(data)
        except msgspec.MsgspecError as error:
            raise ArgumentError(
                "artifact.malformed",
                f"The data ({amount(len(data), 'byte')}) is not an encoded artifact: {error}.",
                hint="Pass the bytes that Artifact.encode returned.",
            ) from error

    def parsed_target(self) -> Target:
        """Return the target as a record."""
        return Target.parse(self.target)

    def metadatum(self, key: str, default: str = "") -> str:
        """Return one entry of the metadata, or default."""
        return dict(self.metadata).get(key, default)


_ENCODER = msgspec.msgpack.Encoder()


@cache
def _decoder() -> msgspec.msgpack.Decoder[Artifact]:
    """Return the decoder, which takes 3 ms to make: a signature refers to all types of expressions. A process
    that finds nothing in the cache does not need it."""
    return msgspec.msgpack.Decoder(Artifact)
