"""Plugins: a backend, with what others registered for it."""

from gossamer_backend import Registry


def test_a_plugin_registers_more_than_its_backend(install):
    install("gossamer-tiny", [("tiny-interpreter", "gossamer_tiny")])
    registry = Registry()
    plugin = registry.plugin("tiny-interpreter")
    assert plugin is registry.plugin("tiny-interpreter")
    assert [item.name for item in plugin.intrinsics] == ["nothing"]
    assert [item.name for item in plugin.backend_extension.passes] == ["unchanged"]
    assert [rules.__name__ for rules in plugin.backend_extension.schedules] == ["no_schedule"]
    assert [*registry.working_extensions("tiny-interpreter")] == [plugin.backend_extension]
