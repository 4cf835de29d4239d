"""The target for the arrays of a device, from the installed backends."""

from __future__ import annotations

from types import SimpleNamespace

import gossamer as gs
from gossamer.targets import resolve_target
from gossamer_backend import HOST, Device
from gossamer_ir.errors import PluginError


class Backends:
    """A registry of backends by their names; one that is None is broken."""

    def __init__(self, **by_name):
        self.by_name = by_name

    def names(self):
        return tuple(self.by_name)

    def backend(self, name):
        if self.by_name[name] is None:
            raise PluginError("plugin.members", f"The backend of the plugin '{name}' lacks load.")
        return SimpleNamespace(device_target=self.by_name[name])


def test_the_first_backend_with_a_target_for_the_device_is_used(monkeypatch):
    def on_gpus(device):
        return f"gpu:device={device.number}" if device.kind == 2 else None

    backends = Backends(broken=None, cpu=lambda device: None, gpu=on_gpus, later=lambda device: "z")
    monkeypatch.setattr(resolve_target, "registry", backends)
    assert gs.device_target(Device(2, 1)) == "gpu:device=1"
    assert gs.device_target(Device(4, 0)) == "z"


def test_the_host_has_no_such_target():
    assert gs.device_target(HOST) is None
