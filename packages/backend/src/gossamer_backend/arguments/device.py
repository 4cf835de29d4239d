"""Devices, by the numbers of DLPack."""

from __future__ import annotations

from typing import NamedTuple

_NAMES = {
    1: "cpu",
    2: "cuda",
    3: "cuda_host",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    9: "vpi",
    10: "rocm",
    11: "rocm_host",
    12: "ext_dev",
    13: "cuda_managed",
    14: "oneapi",
    15: "webgpu",
    16: "hexagon",
    17: "maia",
}
"""The kinds of devices (`DLDeviceType`), in lower case and without prefix."""


class Device(NamedTuple):
    """A device whose memory holds arrays: the kind and the number of `__dlpack_device__`.

    >>> Device(2, 1).text, HOST.text, Device(99, 0).text
    ('cuda:1', 'cpu', 'device type 99:0')
    """

    kind: int
    number: int

    @property
    def text(self) -> str:
        """The name for messages."""
        name = _NAMES.get(self.kind, f"device type {self.kind}")
        return name if self == HOST else f"{name}:{self.number}"


HOST = Device(1, 0)
"""The memory of this process."""
