"""The groups of entry points."""

from gossamer_support.plugins import groups
from gossamer_support.plugins.groups import PluginGroup


def test_each_group_has_a_name_of_its_own():
    declared = [value for value in vars(groups).values() if isinstance(value, PluginGroup)]
    names = [group.name for group in declared]
    assert len(names) == len({*names}) > 5
    assert all(name.startswith("gossamer.") for name in names)
