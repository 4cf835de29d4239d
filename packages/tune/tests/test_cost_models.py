"""Cost models that another distribution registers take part in the choice of a format."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import numpy as np
import pytest
from scipy import sparse

from gossamer_ir.errors import PluginError
from gossamer_tune import COST_MODELS, Workload, choose_format, model, properties_of
from gossamer_tune.cost_models import MODELS
from gossamer_tune.model import vector_products

PLUGIN = """
from gossamer_tune import Estimate


def tiles_times_vector(matrix, workload):
    if workload.features is not None:
        return ()
    return (Estimate("tiles", {"side": 4}, 1.0, COST, "full tiles", adds_zeros=True),)
"""
MATRIX = sparse.random_array((400, 600), density=0.1, format="csr", rng=np.random.default_rng(0))
PROPERTIES = properties_of(MATRIX.shape, MATRIX.indptr, MATRIX.indices)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """install(plugin) installs a distribution with this module."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def add(text, name="tiles_times_vector"):
        (tmp_path / "tiles_of_others.py").write_text(text)
        info = tmp_path / "acme_tiles-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tiles\nVersion: 1.0\n")
        points = f"[gossamer.cost_models]\n{name} = tiles_of_others:tiles_times_vector\n"
        (info / "entry_points.txt").write_text(points)
        importlib.invalidate_caches()
        COST_MODELS.find.cache_clear()

    yield add
    sys.modules.pop("tiles_of_others", None)
    COST_MODELS.find.cache_clear()


def test_its_format_is_chosen_where_it_is_expected_to_pay(install):
    install(PLUGIN.replace("COST", "100.0"))
    choice = choose_format(PROPERTIES, Workload(), calls=1000)
    assert choice.chosen.text == "tiles (side=4)"
    assert "full tiles" in str(choice)
    assert choice.csr.conversion_cycles == 0
    assert (
        choose_format(PROPERTIES, Workload(), calls=1000, adds_zeros=False).chosen.format != "tiles"
    )


def test_a_workload_of_which_it_knows_nothing_is_chosen_for_without_it(install):
    without = choose_format(PROPERTIES, Workload(32), calls=1000)
    install(PLUGIN.replace("COST", "0.0"))
    assert choose_format(PROPERTIES, Workload(32), calls=1000) == without


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PLUGIN.replace("COST", "1 / 0"), "ZeroDivisionError"),
        (
            PLUGIN.replace("COST", 'float("nan")'),
            "ValueError: it estimates .*nan.* cycles; expected",
        ),
        (PLUGIN.replace("COST", "-1.0"), "ValueError: it estimates"),
        ("tiles_times_vector = lambda matrix, workload: None", "TypeError"),
        (
            "tiles_times_vector = lambda matrix, workload: [5]",
            "TypeError: it returned 5; expected",
        ),
    ],
)
def test_a_model_that_fails_is_an_error_of_its_distribution(install, text, reason):
    install(text)
    message = f"'acme-tiles' cannot estimate costs by the cost model 'tiles_times_vector': {reason}"
    with pytest.raises(PluginError, match=message):
        choose_format(PROPERTIES, Workload(), calls=10)


def test_an_entry_point_must_name_a_function(install):
    install("tiles_times_vector = 5")
    with pytest.raises(PluginError, match="type 'int'; expected a function"):
        choose_format(PROPERTIES, Workload(), calls=10)


def test_a_name_of_gossamer_is_its_own(install):
    install(PLUGIN, name="csr_times_vector")
    assert [point.name for point in COST_MODELS.ignored_entry_points()] == ["csr_times_vector"]
    assert choose_format(PROPERTIES, Workload(), calls=10).csr.reason


def test_every_model_of_the_folder_is_in_the_list():
    folders = (*model.__path__, *vector_products.__path__)
    files = {info.name for info in pkgutil.iter_modules(folders)}
    assert {model.__name__ for model in MODELS} == {name for name in files if "_times_" in name}
