"""Random bytes as encoded modules: decoded or rejected with an error of gossamer, in bounded time and
memory.
"""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import damaged_json, damaged_script, limited, read_encoded, read_script, run, samples
from mutations import scripts as golden_scripts

from gossamer_ir.errors import ParseError
from gossamer_ir.interchange import serialization
from gossamer_ir.script import parse_module

pytestmark = pytest.mark.no_error_examples


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_damaged_samples_and_scripts_are_read_or_refused(seed):
    outcomes, failed = run(seed, 1000)
    assert failed == []
    assert any(outcome.endswith("read") for outcome in outcomes)
    assert len(outcomes) > 30, "the damage reaches few checks"


@given(st.binary(max_size=300))
def test_bytes_are_read_or_refused(data):
    with limited():
        read_encoded(data)


@given(st.text(max_size=300))
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_texts_are_read_or_refused(text):
    with limited():
        read_script(text)
        read_script(f"@T.prim_func\ndef f(n: T.int64) -> None:\n    {text}")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_texts_that_were_damaged_several_times_are_read_or_refused(seed):
    rng = random.Random(seed)
    data, text = rng.choice(samples()), rng.choice(golden_scripts())
    for _ in range(4):
        data, text = damaged_json(rng, data), damaged_script(rng, text)
        with limited():
            read_encoded(data)
            read_script(text)
        if data.startswith(b"[[["):
            return


HEADER = b'{"gossamer_ir":[0,1],"stage":"loop","entry":"f","functions":['
HUGE = {
    "brackets": (b"[" * 40_000_000, "wire.depth"),
    "objects": (b'{"a":' * 5_000_000, "wire.depth"),
    "brackets in a string": (b'"' + b"[" * 20_000_000, "wire."),
    "escapes": (b'"' + b"\\" * 20_000_001, "wire."),
    "brackets that close": (HEADER + b"[]," * 100_000, "wire."),
    "strings": (HEADER + b'"a",' * 1_000_000, "wire."),
    "spaces": (b" " * 20_000_000, "wire."),
    "a number": (HEADER + b"9" * 10_000_000, "wire."),
    "a list that does not end": (HEADER + b"1," * 5_000_000, "wire."),
    "more bytes than there may be": (b" " * (serialization.MAX_BYTES + 1), "wire.size"),
}


@pytest.mark.parametrize(("data", "code"), HUGE.values(), ids=HUGE)
def test_what_is_huge_is_refused_in_bounded_time_and_memory(data, code):
    tracemalloc.start()
    try:
        with limited(), pytest.raises(ParseError) as caught:
            serialization.loads(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.code.startswith(code)
    assert peak < 4 * len(data) + 2**20


SCRIPTS = {
    "brackets": "x = " + "(" * 100_000,
    "lines": "\n" * 7_000_000 + "x = (",
    "names": "a.b" * 500_000,
    "minus signs": "x = " + "-" * 100_000 + "1",
    "powers": "x = " + "2 ** " * 50_000 + "2",
    "sums": "x = " + "1 + " * 50_000 + "1",
    "comparisons": "x = " + "1 < " * 50_000 + "1",
    "loops": "".join(f"{' ' * level}for i in n:\n" for level in range(150)),
    "a number": "x = " + "9" * 1_000_000,
    "a constant of constants": "x = " + "10 ** " * 3 + "10",
    "more characters than there may be": " " * 8_000_001,
}


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_that_is_huge_is_refused(text):
    with limited(), pytest.raises(ParseError):
        parse_module(text)
