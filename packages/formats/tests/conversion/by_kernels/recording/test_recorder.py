"""Recordings do for other inputs what was recorded for one, and notice what was not recorded."""

from __future__ import annotations

import operator

import pytest

from gossamer_formats.conversion.by_kernels.recording.branch import (
    MAX_OUTCOMES,
    RecordedValue,
    UnrecordedError,
    merge,
    run_recording,
)
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder


def recorded(number):
    """Records: the square of an even number, the negative of another one."""
    recorder = Recorder(None, [number])
    if recorder.decide(operator.mod, RecordedValue(0), 2):
        recorded = recorder.compute(operator.neg, RecordedValue(0))
    else:
        recorded = recorder.compute(operator.mul, RecordedValue(0), RecordedValue(0))
    return recorder.finish(recorded)


def test_a_recording_is_replayed_for_other_inputs_with_the_same_decisions():
    assert run_recording(recorded(4), [6]) == 36
    assert run_recording(recorded(3), [5]) == -5


def test_a_decision_with_another_outcome_is_noticed():
    with pytest.raises(UnrecordedError):
        run_recording(recorded(4), [5])


def test_recordings_of_one_kind_are_merged():
    recording = recorded(4)
    merge(recording, recorded(3))
    assert [run_recording(recording, [number]) for number in (2, 7)] == [4, -7]


def test_a_recording_that_is_known_changes_nothing():
    recording = recorded(4)
    merge(recording, recorded(6))
    assert list(recording.outcomes) == [0]


def test_the_oldest_of_many_outcomes_is_dropped():
    def of(number):
        recorder = Recorder(None, [number])
        return recorder.finish(
            recorder.compute(abs, recorder.decide(operator.pos, RecordedValue(0)))
        )

    recording = of(0)
    for number in range(1, MAX_OUTCOMES + 1):
        merge(recording, of(number))
    assert list(recording.outcomes) == list(range(1, MAX_OUTCOMES + 1))


def test_a_value_is_kept_as_long_as_one_branch_needs_it():
    def of(number):
        recorder = Recorder(None, [number])
        doubled = recorder.compute(operator.add, RecordedValue(0), RecordedValue(0))
        if recorder.decide(operator.lt, RecordedValue(0), 10):
            return recorder.finish(recorder.compute(operator.neg, RecordedValue(0)))
        return recorder.finish(doubled)

    recording = of(3)
    merge(recording, of(30))
    assert [run_recording(recording, [number]) for number in (4, 40)] == [-4, 80]


def test_a_decision_about_constants_is_not_recorded():
    recorder = Recorder(None, [4])
    assert recorder.decide(operator.lt, 3, 10)
    assert recorder.finish(RecordedValue(0)).decision is None


def require_negative(recorder, *, is_decided):
    """Attempts what fails for numbers that are not negative; it fails for all unless it `is_decided`."""
    try:
        with recorder.attempt():
            negative = recorder.compute(operator.neg, RecordedValue(0))
            if not is_decided or recorder.decide(operator.lt, negative, 0):
                raise NotDirectError("the number cannot be converted so")
    except NotDirectError:
        pass


def test_the_calls_of_an_attempt_that_fails_for_all_inputs_are_forgotten():
    recorder = Recorder(None, [4])
    require_negative(recorder, is_decided=False)
    assert not recorder.finish(RecordedValue(0)).calls


def test_the_steps_that_lead_to_the_decision_for_a_failure_are_kept():
    recorder = Recorder(None, [4])
    require_negative(recorder, is_decided=True)
    recording = recorder.finish(RecordedValue(0))
    assert run_recording(recording, [5]) == 5
    with pytest.raises(UnrecordedError):
        run_recording(recording, [-5])
