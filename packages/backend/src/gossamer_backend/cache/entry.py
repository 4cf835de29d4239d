"""The bytes of a cache entry: a header with magic, format version, key and checksum, then the payload.

The checksum covers the header, too. A file that differs in any way from what `pack` wrote for its key is
read as None.
"""

from __future__ import annotations

import hashlib
import re
import struct
from typing import Literal, TypeAlias

EntryKind: TypeAlias = Literal["artifact", "link"]

MAGIC = b"gossamer"
# Grows when the layout below changes: entries of another version are misses, never errors.
ENTRY_FORMAT = 1
_KINDS: tuple[EntryKind, ...] = ("artifact", "link")
_HEADER = struct.Struct("<8sHH32sQ")
# The bytes of a SHA-256.
_DIGEST = 32
_KEY = re.compile(rb"[0-9a-f]{64}")


def pack_entry(key: str, kind: EntryKind, *, payload: bytes) -> bytes:
    """Return the bytes of an entry; `key` has 64 hexadecimal digits.

    >>> unpack_entry("0" * 64, pack_entry("0" * 64, "artifact", payload=b"code"))
    ('artifact', b'code')
    """
    header = _HEADER.pack(MAGIC, ENTRY_FORMAT, _KINDS.index(kind), bytes.fromhex(key), len(payload))
    return header + hashlib.sha256(header + payload).digest() + payload


def unpack_entry(key: str, data: bytes) -> tuple[EntryKind, bytes] | None:
    """Return kind and payload, or None if the data is not an entry for this key."""
    start = _HEADER.size + _DIGEST
    if len(data) < start:
        return None
    magic, version, kind, found_key, length = _HEADER.unpack_from(data)
    if (magic, version, found_key) != (MAGIC, ENTRY_FORMAT, bytes.fromhex(key)):
        return None
    if length != len(data) - start or kind >= len(_KINDS):
        return None
    payload = data[start:]
    digest = hashlib.sha256(data[: _HEADER.size] + payload).digest()
    if digest != data[_HEADER.size : start]:
        return None
    # The checksum proves that the file is complete, not who wrote it: a link becomes a file name, so it is
    # checked again.
    is_sound = _KINDS[kind] != "link" or _KEY.fullmatch(payload) is not None
    return (_KINDS[kind], payload) if is_sound else None
