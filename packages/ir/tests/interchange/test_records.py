"""Encoding and decoding of records: schedules, formats, signatures, targets, stats."""

from pathlib import Path

import pytest

from gossamer_ir.errors import ArgumentError, ParseError
from gossamer_ir.interchange import serialization
from gossamer_ir.interchange.envelopes import RECORDS
from gossamer_ir.interchange.records import Schedule, Stats, Step, Target

FOLDER = Path(__file__).parents[1] / "samples"


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_a_frozen_sample_stays_loadable_and_canonical(kind):
    data = (FOLDER / f"0.1-record-{RECORDS[kind]}.json").read_bytes()
    record = serialization.loads_record(data, kind)
    assert type(record) is kind
    assert serialization.dumps_record(record) + b"\n" == data


def test_the_order_of_arguments_does_not_change_the_bytes():
    one, other = (
        Step("split", {"a": 1, "b": (None, True)}),
        Step("split", {"b": (None, True), "a": 1}),
    )
    first, second = Schedule(loop=(one,)), Schedule(loop=(other,))
    assert serialization.dumps_record(first) == serialization.dumps_record(second)
    assert serialization.loads_record(serialization.dumps_record(first), Schedule) == second


REFUSED = {
    "another record": ('{"gossamer_ir":[0,1],"record":"Stats","value":{}}', "wire.field"),
    "an unknown field": (
        '{"gossamer_ir":[0,1],"record":"Target","value":{"backend":"x","y":1}}',
        "wire.field",
    ),
    "no record": ('{"gossamer_ir":[0,1]}', "wire.field"),
    "an unknown version": ('{"gossamer_ir":[9,0],"record":"Target","value":{}}', "wire.version"),
    "not JSON": ('{"gossamer_ir":[0,1],"record":"Target","value":{}', "wire.syntax"),
}


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_a_target_is_refused_by_code(text, code):
    with pytest.raises(ParseError) as caught:
        serialization.loads_record(text, Target)
    assert caught.value.code == code


def test_a_class_that_is_no_record_is_refused():
    with pytest.raises(ArgumentError, match="'Step' is not a record") as caught:
        serialization.loads_record(serialization.dumps_record(Stats(1, 1, 1, 1, 0)), Step)
    assert caught.value.code == "wire.record"


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 100, 1000])
def test_a_representative_of_statistics_is_that_of_itself(rows):
    """The key of a kernel and the rules round on their own, and must see one class."""
    for nnz in range(0, 40 * rows + 1, max(rows // 3, 1)):
        stats = Stats(rows, 7, nnz, longest_row=nnz, empty_rows=rows // 2)
        rounded = stats.representative()
        assert rounded.representative() == rounded
        assert 0 <= stats.mean_row - rounded.mean_row <= max(0.25, stats.mean_row / 4)
