"""Composable formats of the library pass the suite of the testkit."""

from __future__ import annotations

from gossamer_formats.registry.composable_formats import COMPOSABLE_FORMATS
from gossamer_testkit import ComposableFormatSuite


class TestHyb(ComposableFormatSuite):
    format = COMPOSABLE_FORMATS.lookup("hyb")
    parameters = ({}, {"c": 3}, {"k": 0}, {"c": 2, "k": 1})


def test_every_composable_format_is_tested():
    tested = {suite.format.name for suite in ComposableFormatSuite.__subclasses__()}
    assert tested >= {*COMPOSABLE_FORMATS.names()}
