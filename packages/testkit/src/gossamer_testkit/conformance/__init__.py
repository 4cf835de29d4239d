"""The conformance suites: for backends, for formats and for composable formats."""

from gossamer_testkit.conformance.backends import BackendSuite
from gossamer_testkit.conformance.base import SuiteCheck
from gossamer_testkit.conformance.composable_formats import ComposableFormatSuite
from gossamer_testkit.conformance.formats import FormatSuite

__all__ = ["BackendSuite", "ComposableFormatSuite", "FormatSuite", "SuiteCheck"]
