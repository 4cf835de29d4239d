"""The suites for formats and composable formats pass for formats of the library."""

from __future__ import annotations

from gossamer_formats import format_named
from gossamer_formats.registry.composable_formats import COMPOSABLE_FORMATS
from gossamer_testkit import ComposableFormatSuite, FormatSuite


class TestCsr(FormatSuite):
    format = format_named("csr")


class TestBlocks(FormatSuite):
    format = format_named("bsr")
    parameters = ({"block_rows": 2, "block_columns": 3},)


class TestHyb(ComposableFormatSuite):
    format = COMPOSABLE_FORMATS.lookup("hyb")
    parameters = ({}, {"c": 2, "k": 1})
