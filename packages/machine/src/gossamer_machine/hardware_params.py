"""A model of a CPU: its vectors, registers and caches.

The backend adds the options that describe the machine to a resolved target. Rules for schedules and models of
costs derive thresholds from it, by factors that stand beside their measurements. They are for CPUs only.
A plugin for another kind of machine registers its own rules (`gossamer_schedules`), which are tried first and
read the options of its targets themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS, DType
from gossamer_ir.interchange.records import Target
from gossamer_machine.cpu_options import CPU_OPTIONS, NATIVE_VSCALE, NO_VSCALE


class HardwareParams(NamedTuple):
    """The parameters of a CPU, each with the default of its option in `CPU_OPTIONS`. Machines with narrower
    vectors split those of the default.

    `private_cache` and `shared_cache` are bytes of the second and of the last level. `gathers` is one of
    `GATHER_SPEEDS`, `cores` the processors on which a kernel runs unless it is told otherwise. `vscale` is
    the constant that replaces vscale if the CPU has no scalable vectors.

    >>> HardwareParams(vector_bits=256).lanes("float64"), HardwareParams().accumulators
    (4, 16)
    """

    vector_bits: int = 512
    private_cache: int = 1 << 20
    shared_cache: int = 32 << 20
    gathers: str = "moderate"
    cores: int = 32
    vscale: int | str = NATIVE_VSCALE

    def lanes(self, dtype: str, *, holding: int | None = None) -> int:
        """Return the number of lanes of a vector register; a bool takes a byte of memory.

        If half of the lanes or fewer hold `holding` elements, the vector is as narrow as that allows.

        >>> HardwareParams().lanes("float32", holding=100), HardwareParams().lanes("float32", holding=5)
        (16, 8)
        """
        lanes = self.vector_bits // max(8, DType.parse(dtype).bits)
        while holding is not None and lanes // 2 >= max(1, holding):
            lanes //= 2
        return lanes

    @property
    def accumulators(self) -> int:
        """The number of accumulators: half of the vector registers (32 with 512 bits, else 16)."""
        return 16 if self.vector_bits >= 512 else 8

    @property
    def fixed_vscale(self) -> int | None:
        """The constant that replaces vscale if the CPU has no scalable vectors: by default as many units of
        128 bits as a vector register has. None if they are an error.

        >>> HardwareParams(vector_bits=256).fixed_vscale, HardwareParams(vscale="none").fixed_vscale
        (2, None)
        """
        if self.vscale == NO_VSCALE:
            return None
        return (
            self.vector_bits // VSCALE_UNIT_BITS
            if self.vscale == NATIVE_VSCALE
            else int(self.vscale)
        )


def hardware_params(target: Target) -> HardwareParams:
    """Return the parameters of the hardware that a target describes by its `CPU_OPTIONS`; an option that is
    not given has its default.

    >>> params = hardware_params(Target.parse("generic-cpu:vector_bits=256,gathers=slow"))
    >>> params == HardwareParams(vector_bits=256, gathers="slow")
    True
    """
    values: dict[str, Any] = {option.parameter: option.value_of(target) for option in CPU_OPTIONS}
    return HardwareParams(**values)
