"""`gossamer formats` draws every format with the arrays of one matrix."""

import importlib
import sys

from typer.testing import CliRunner

from gossamer.cli.app import app
from gossamer_formats import format_names
from gossamer_formats.internal_api import NAMED_FILE_FORMATS
from gossamer_formats.registry.composable_formats import COMPOSABLE_FORMATS
from gossamer_formats.registry.formats import FORMATS
from gossamer_tune import COST_MODELS

PLUGIN = '''
"""ELL of others: with a width that must be given."""

from gossamer_formats import Format
from gossamer_formats.descriptions.ell import ell


def out_of_order(dtype="float32"):
    raise RuntimeError("no license")


def describe():
    return ell()


DRAWN = Format("drawn", describe, parameters={"width": None}, example_parameters={"width": 3})
WITHOUT_EXAMPLE = Format("without_example", describe, parameters={"width": None})
RAISING = Format("raising", out_of_order)
'''
ENTRY_POINTS = """
[gossamer.formats]
drawn = formats_of_others:DRAWN
without_example = formats_of_others:WITHOUT_EXAMPLE
raising = formats_of_others:RAISING
missing = formats_of_others:MISSING
csr = formats_of_others:DRAWN

[gossamer.file_formats]
rb = formats_of_others:DRAWN
mtx = formats_of_others:DRAWN

[gossamer.cost_models]
rows_times_vector = formats_of_others:describe
"""


def test_every_format_is_listed_with_its_arrays():
    result = CliRunner().invoke(app, ["formats"])
    assert result.exit_code == 0
    assert "broken" not in result.stdout
    drawn, *listed = result.stdout.split("\n\n")
    assert drawn.splitlines()[0].split() == ["a", ".", ".", ".", "b", "."]
    assert [text.partition(":")[0] for text in listed] == [
        *format_names(),
        *COMPOSABLE_FORMATS.names(),
    ]
    by_name = {text.partition(":")[0]: text.splitlines()[1:] for text in listed}
    assert [line.split() for line in by_name["csr"]] == [
        ["indices", "0", "4", "0", "5", "2"],
        ["indptr", "0", "2", "4", "4", "5"],
        ["data", "a", "b", "c", "d", "e"],
    ]
    assert by_name["bsr"][0].split() == ["parameters", "block_rows,", "block_columns"]
    assert by_name["hyb"][0].split() == ["parameters", "c=1,", "k"]
    assert [line.split()[0] for line in by_name["hyb"]].count("data") == 2
    assert by_name["ell"][-1].split() == ["data", "a", "b", "c", "d", ".", ".", "e", "."]


def test_formats_of_plugins_are_drawn_and_broken_ones_are_listed_with_the_reason(
    tmp_path, monkeypatch
):
    info = tmp_path / "formats_of_others-1.0.dist-info"
    info.mkdir()
    (tmp_path / "formats_of_others.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: formats-of-others\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    forget()
    try:
        result = CliRunner().invoke(app, ["formats"])
    finally:
        forget()
        sys.modules.pop("formats_of_others", None)
    assert result.exit_code == 0
    *texts, file_format, own_suffix, cost_model = result.stdout.strip().split("\n\n")
    *_, drawn, missing, raising, without_example, _hyb, ignored = texts
    assert drawn.splitlines()[0] == "drawn: ELL of others: with a width that must be given."
    assert drawn.splitlines()[-1].split() == ["data", *"ab.cd....e.."]
    assert missing.startswith("missing: broken: The plugin 'formats-of-others' cannot register")
    assert (
        "'formats-of-others' cannot describe the format 'raising': RuntimeError: no lic" in raising
    )
    assert "needs the parameter 'width'" in without_example
    assert file_format.startswith("file format rb: broken: The entry point 'rb' of the group")
    assert own_suffix == "file format mtx of formats-of-others: ignored, as gossamer has one"
    assert cost_model == "cost model rows_times_vector: registered by a plugin"
    assert ignored == ("csr of formats-of-others: ignored, as gossamer has a format of this name")


def forget():
    for objects in (FORMATS, NAMED_FILE_FORMATS, COST_MODELS):
        objects.find.cache_clear()
