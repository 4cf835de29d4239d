"""Deliberately broken plugins: each name below is the object of one entry point."""

import types

from gossamer_backend.plugin_api import Probe, hookimpl
from gossamer_machine import Machine


class Plain:
    """A working backend; subclasses break one part of it."""

    api_version = 2
    version = "1.0"
    capabilities = frozenset()

    def __init__(self, name):
        self.name = name

    def targets(self):
        return (self.name,)

    def probe(self, target):
        return Probe(is_usable=False, reason="there is no such machine")

    def machine(self, target):
        return Machine()

    def compile(self, module, target):
        return "not an artifact"

    def load(self, artifact):
        raise NotImplementedError


class OldApi(Plain):
    api_version = 1


class NewApi(Plain):
    api_version = 3


class FractionalApi(Plain):
    api_version = 2.0


class ListOfCapabilities(Plain):
    capabilities = ("guard",)


class RaisingProbe(Plain):
    def probe(self, target):
        raise ZeroDivisionError("no such device")


class Incomplete:
    name = "incomplete"
    api_version = 2
    version = "1.0"
    capabilities = frozenset()


def registering(*backends):
    plugin = types.SimpleNamespace()
    plugin.gossamer_backends = hookimpl(lambda: list(backends))
    return plugin


old_api = registering(OldApi("old-api"))
new_api = registering(NewApi("new-api"))
fractional_api = registering(FractionalApi("fractional-api"))
list_of_capabilities = registering(ListOfCapabilities("list-of-capabilities"))
raising_probe = registering(RaisingProbe("raising-probe"))
incomplete = registering(Incomplete())
other_name = registering(Plain("another"))
unusable = registering(Plain("unusable"))
clash = registering(Plain("clash"))
no_hook = types.SimpleNamespace()
other_primitive = types.SimpleNamespace(
    gossamer_backends=hookimpl(lambda: [Plain("other-primitive")]),
    gossamer_primitives=hookimpl(lambda: [len]),
)
same_primitive = types.SimpleNamespace(
    gossamer_backends=hookimpl(lambda: [Plain("same-primitive")]),
    gossamer_primitives=hookimpl(lambda: [types.SimpleNamespace(op="same-primitive.f")] * 2),
)
misspelled_hook = types.SimpleNamespace(gossamer_backend=hookimpl(lambda: [None]))


def raising():
    raise RuntimeError("out of order")


raising_hook = types.SimpleNamespace(gossamer_backends=hookimpl(raising))
