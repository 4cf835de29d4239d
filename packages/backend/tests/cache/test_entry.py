"""Entries of the cache: any damage is noticed."""

import hashlib
import struct

from cached_artifacts import KEY, OTHER, artifact

from gossamer_backend.cache.entry import ENTRY_FORMAT, pack_entry, unpack_entry


def test_an_intact_entry_of_a_kind_that_does_not_exist_is_a_miss():
    header = struct.pack("<8sHH32sQ", b"gossamer", ENTRY_FORMAT, 2, bytes.fromhex(KEY), 4)
    digest = hashlib.sha256(header + b"code").digest()
    assert unpack_entry(KEY, header + digest + b"code") is None


def test_every_single_flipped_bit_is_found():
    data = pack_entry(KEY, "artifact", payload=artifact().encode())
    assert unpack_entry(KEY, data) == ("artifact", artifact().encode())
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        assert unpack_entry(KEY, bytes(flipped)) is None


def test_every_truncation_is_found():
    data = pack_entry(KEY, "link", payload=OTHER.encode())
    assert [size for size in range(len(data) + 1) if unpack_entry(KEY, data[:size])] == [len(data)]
