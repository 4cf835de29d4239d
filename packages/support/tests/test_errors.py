"""Errors render all diagnostics, print their text only when they are shown, and are pickled without loss."""

from __future__ import annotations

import pickle

import pytest

from gossamer_support.errors import ArgumentError, CodedError, Diagnostic, PluginError, UserError

TWO = (Diagnostic("a.first", "One."), Diagnostic("a.second", "Two.", ("body", 0), "Hint."))


def test_every_diagnostic_is_a_line():
    error = UserError("", "", diagnostics=TWO, text="  ^")
    assert str(error) == "One. [a.first]\nTwo. Hint. [a.second]\n  ^"
    assert error.code == "a.first"


def test_a_text_is_made_once_when_the_error_is_shown():
    made = []

    def text():
        made.append("for i")
        return "for i"

    error = ArgumentError("a.code", "It is wrong.", hint="Correct it.")
    error.with_text(text)
    assert made == []
    assert str(error) == str(error) == "It is wrong. Correct it. [a.code]\nfor i"
    assert made == ["for i"]
    error.with_text(lambda: "another")
    assert error.text == "for i"


@pytest.mark.parametrize("kind", [ArgumentError, PluginError])
def test_an_error_is_the_same_in_another_process(kind):
    error = kind("a.code", "It is wrong.", place=("body", 1))
    error.with_text(lambda: "for i")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, CodedError)
    assert (type(again), str(again), again.diagnostics) == (kind, str(error), error.diagnostics)
