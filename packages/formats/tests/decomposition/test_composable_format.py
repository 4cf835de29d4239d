"""Composable formats of other distributions, and the checks of the parts that they return."""

from __future__ import annotations

import importlib
import sys

import pytest
from decomposed_matrices import matrix, require_parts_of

from gossamer_formats import decompose
from gossamer_formats.registry.composable_formats import COMPOSABLE_FORMATS
from gossamer_ir.errors import FormatError, PluginError

PLUGIN = '''
"""Upper and lower triangles."""

import numpy as np

from gossamer_formats import ComposableFormat
from gossamer_formats.decomposition.format_list import chosen_parts


def triangles(matrix, *, offset):
    return chosen_parts(matrix, [("csr", lambda i, j: j >= i + offset), "csc"])


def twice(matrix):
    return [
        *chosen_parts(matrix, ["csr"]),
        *(part._replace(name="again") for part in chosen_parts(matrix, ["csc"])),
    ]


def nothing(matrix):
    return None


def failing(matrix):
    yield from chosen_parts(matrix, ["csr"])
    raise KeyError("rows")


def altered(**changes):
    def decompose(matrix):
        return [part._replace(**changes) for part in chosen_parts(matrix, ["csr"])]

    return decompose


TRIANGLES = ComposableFormat("triangles", triangles, parameters={"offset": None})
TWICE = ComposableFormat("twice", twice)
NOTHING = ComposableFormat("nothing", nothing)
FAILING = ComposableFormat("failing", failing)
NUMBERS = ComposableFormat("numbers", lambda matrix: [1, 2])
NAMELESS = ComposableFormat("nameless", altered(name="upper left"))
SAME = ComposableFormat("same", lambda matrix: 2 * [*chosen_parts(matrix, ["csr"])])
SHORT = ComposableFormat("short", altered(permutation=np.arange(3)))
'''


ENTRY_POINTS = """
[gossamer.composable_formats]
triangles = parts_of_others:TRIANGLES
twice = parts_of_others:TWICE
nothing = parts_of_others:NOTHING
failing = parts_of_others:FAILING
numbers = parts_of_others:NUMBERS
nameless = parts_of_others:NAMELESS
same = parts_of_others:SAME
short = parts_of_others:SHORT
wrong = parts_of_others:triangles
hyb = parts_of_others:TWICE
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Installs a distribution that registers composable formats."""
    info = tmp_path / "parts_of_others-1.0.dist-info"
    info.mkdir()
    (tmp_path / "parts_of_others.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parts-of-others\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    COMPOSABLE_FORMATS.find.cache_clear()
    yield
    COMPOSABLE_FORMATS.find.cache_clear()
    sys.modules.pop("parts_of_others", None)


@pytest.mark.usefixtures("plugin")
def test_another_distribution_registers_a_composable_format():
    assert {"hyb", "triangles", "twice", "wrong"} <= {*COMPOSABLE_FORMATS.names()}
    assert [point.name for point in COMPOSABLE_FORMATS.ignored_entry_points()] == ["hyb"]
    stored = matrix()
    decomposition = decompose(stored, "triangles", offset=2)
    assert [part.name for part in decomposition.parts] == ["csr_0", "csc_1"]
    require_parts_of(decomposition, stored)
    with pytest.raises(FormatError, match="Pass offset=") as caught:
        decompose(stored, "triangles")
    assert caught.value.code == "format.parameter.missing"
    with pytest.raises(
        PluginError, match=r"expected a gossamer_formats\.ComposableFormat"
    ) as wrong:
        decompose(stored, "wrong")
    assert wrong.value.code == "plugin.entry_point"


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("twice", "composable_format", "stored value 0 of the matrix in 2 slots; each value"),
        ("numbers", "composable_format", "returned an object of type 'int'; expected a gossamer"),
        ("nameless", "composable_format", "named a part 'upper left'; expected letters"),
        ("same", "composable_format", "named two parts 'csr_0'; expected a name of its own"),
        ("short", "composable_format", "a permutation of the shape (3,) and the dtype int64"),
        (
            "nothing",
            "failed",
            "'parts-of-others' cannot decompose a matrix by the composable format",
        ),
        ("failing", "failed", "'failing': KeyError: 'rows'."),
    ],
)
def test_what_a_composable_format_returns_is_checked(name, code, message):
    with pytest.raises(PluginError) as caught:
        decompose(matrix(), name)
    assert caught.value.code == f"plugin.{code}"
    assert message in str(caught.value)
