"""`device_target`: the target for the arrays of a device."""

from __future__ import annotations

import contextlib

from gossamer.targets import resolve_target
from gossamer_backend import Device
from gossamer_ir.errors import PluginError
from gossamer_support.typed_calls import typed


@typed
def device_target(device: Device) -> str | None:
    """Return the target of an installed backend whose kernels take arrays of a device, for `target=`; None
    if there is no such backend.

    Backends with the ability `DeviceTargets` are asked in the order of their names; one that is broken is
    left out. The device need not work: compiling for the target says what is missing.

    >>> from gossamer_backend import Device
    >>> print(device_target(Device(12, 0)))
    None
    """
    registry = resolve_target.registry
    for name in registry.names():
        with contextlib.suppress(PluginError):
            target = registry.backend(name).device_target(device)
            if target is not None:
                return target
    return None
