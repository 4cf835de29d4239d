"""Every format of the library passes the suite for formats."""

from __future__ import annotations

from gossamer_formats import format_named, format_names
from gossamer_testkit import FormatSuite


class TestBitmask(FormatSuite):
    format = format_named("bitmask")


class TestBsr(FormatSuite):
    format = format_named("bsr")
    parameters = ({"block_rows": 2, "block_columns": 3}, {"block_rows": 1, "block_columns": 1})


class TestCoo(FormatSuite):
    format = format_named("coo")


class TestCooOfThreeDimensions(FormatSuite):
    format = format_named("coo")
    ndim = 3


class TestCsc(FormatSuite):
    format = format_named("csc")


class TestCsf(FormatSuite):
    format = format_named("csf")
    ndim = 3


class TestCsr(FormatSuite):
    format = format_named("csr")


class TestDbsr(FormatSuite):
    format = format_named("dbsr")
    parameters = ({"block_rows": 3, "block_columns": 2},)


class TestDcsr(FormatSuite):
    format = format_named("dcsr")


class TestDia(FormatSuite):
    format = format_named("dia")


class TestEll(FormatSuite):
    format = format_named("ell")


class TestEll3d(FormatSuite):
    format = format_named("ell3d")
    parameters = ({"group_rows": 2, "width": 2},)
    ndim = 3


class TestEllRows(FormatSuite):
    format = format_named("ell_rows")
    parameters = ({"width": 2}, {"width": 5})


class TestNM(FormatSuite):
    format = format_named("n_m")
    parameters = ({"group": 3, "slots": 3},)


class TestPaddedCsr(FormatSuite):
    format = format_named("padded_csr")
    parameters = ({"width": 4},)


class TestRagged(FormatSuite):
    format = format_named("ragged")


class TestRowGroups(FormatSuite):
    format = format_named("row_groups")
    parameters = ({}, {"height": 2}, {"height": 5})


class TestSell(FormatSuite):
    format = format_named("sell")
    parameters = ({}, {"height": 2, "sigma": 4}, {"height": 3, "sigma": 1})


class TestBlockedSell(FormatSuite):
    format = format_named("blocked_sell")
    parameters = (
        {"block_rows": 2, "block_columns": 3},
        {"block_rows": 3, "block_columns": 2, "height": 2, "sigma": 4},
        {"block_rows": 1, "block_columns": 1, "height": 3, "sigma": 1},
    )


class TestSlicedDia(FormatSuite):
    format = format_named("sliced_dia")
    parameters = ({}, {"height": 2}, {"height": 3})


class TestSrBcrs(FormatSuite):
    format = format_named("sr_bcrs")
    parameters = ({"strip": 2, "width": 3},)


class TestTiledCsr(FormatSuite):
    format = format_named("tiled_csr")
    parameters = ({"tile_columns": 1}, {"tile_columns": 4}, {"tile_columns": 1000})


class TestVNM(FormatSuite):
    format = format_named("v_n_m")
    parameters = ({"rows": 2, "group": 3, "chosen": 3, "slots": 3},)


def test_every_format_is_tested():
    assert {suite.format.name for suite in FormatSuite.__subclasses__()} >= {*format_names()}
