"""Errors are pickled to another process without loss."""

import pickle

import pytest

from gossamer_ir.errors import CodedError, Diagnostic, ScheduleError, VerifyError
from gossamer_ir.interpret.interpreter_errors import GuardFailed, InterpreterError
from gossamer_ir.script import parse_module


def with_a_text():
    error = ScheduleError("schedule.no_loop", "There is no loop 'z'.", hint="The loops are i.")
    error.with_text(lambda: "for i in T.serial(n):")
    return error


def script_error():
    with pytest.raises(CodedError) as caught:
        parse_module("def f(x: T.handl): pass")
    return caught.value


def verify_error():
    diagnostics = (
        Diagnostic("verify.a", "One."),
        Diagnostic("verify.b", "Two.", ("body", 0), "Hint."),
    )
    return VerifyError("", "", diagnostics=diagnostics)


@pytest.mark.parametrize("make", [with_a_text, script_error, verify_error])
def test_an_error_is_the_same_in_another_process(make):
    error = make()
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.code, again.text) == (str(error), error.code, error.text)
    assert again.diagnostics == error.diagnostics


@pytest.mark.parametrize(
    "error", [InterpreterError("It stops.", buffer_name="Y"), GuardFailed("Y", " at 3")]
)
def test_an_error_of_the_interpreter_keeps_its_message_and_its_buffer(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.buffer) == (type(error), str(error), "Y")
