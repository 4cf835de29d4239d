"""Objects that distributions register by name: valid ones, duplicates, wrong ones, those of gossamer."""

from __future__ import annotations

import pytest

from gossamer_support.errors import PluginError
from gossamer_support.plugins.named_objects import NamedObjects

INSTALLED = {
    "acme": "two = acme_numbers:TWO\ntext = acme_numbers:TEXT\ntwice = acme_numbers:TWO\n",
    "other": "twice = acme_numbers:TWO\none = acme_numbers:TWO\nmissing = acme_numbers:THREE\n",
}


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    (tmp_path / "acme_numbers.py").write_text("TWO, TEXT = 2, 'text'\n")
    for name, entries in INSTALLED.items():
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[acme.numbers]\n{entries}")
    monkeypatch.syspath_prepend(tmp_path)
    return NamedObjects(
        "acme.numbers",
        "number",
        expected="an int",
        is_valid=lambda value, name: isinstance(value, int),
        built_in={"one": lambda: 1},
    )


def test_names_of_gossamer_are_first_and_are_its_own(numbers):
    assert numbers.names() == ["one", "missing", "text", "twice", "two"]
    assert [numbers.find(name) for name in ("one", "two", "three")] == [1, 2, None]
    assert [point.distribution for point in numbers.ignored_entry_points()] == ["other"]
    assert next(numbers.items()) == ("one", 1)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("text", "plugin.entry_point"),
        ("twice", "plugin.duplicate"),
        ("missing", "plugin.failed"),
    ],
)
def test_an_object_that_cannot_be_used_is_refused(name, code, numbers):
    with pytest.raises(PluginError) as raised:
        numbers.find(name)
    assert raised.value.code == code


def test_an_error_of_an_object_names_its_distribution(numbers):
    message = "'acme' cannot add number 'two': ValueError: no"
    with pytest.raises(PluginError, match=message), numbers.errors_of("two", doing="add"):
        raise ValueError("no")
    with pytest.raises(ValueError, match="no"), numbers.errors_of("one", doing="add"):
        raise ValueError("no")
