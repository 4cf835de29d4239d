"""Modules with wrong parts: the verifier reports diagnostics or accepts them, and never crashes."""

import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gossamer_ir.errors import ParseError, VerifyError
from gossamer_ir.interchange import serialization
from gossamer_ir.nodes import Module
from gossamer_ir.traversal.equality import structural_hash
from gossamer_ir.verify import diagnostics, verify

pytestmark = pytest.mark.no_error_examples

SAMPLES = sorted((Path(__file__).parents[1] / "samples").glob("0.1-[es]*.json"))
TEXTS = {path.stem: path.read_bytes() for path in SAMPLES}
STAGES = ("coordinate", "position", "loop", "flat")


def slots(value, collected):
    """Every place in a decoded text that holds a value, with its container."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if key not in ("type", "gossamer_ir", "stage"):
            collected.append((value, key))
        if isinstance(inner, dict | list):
            slots(inner, collected)
    return collected


def damaged(name, seed):
    """A sample with a few parts replaced by similar ones; None if it cannot be read."""
    rng = random.Random(seed)
    tree = msgspec.json.decode(TEXTS[name])
    for _ in range(rng.randint(1, 4)):
        places = slots(tree, [])
        (into, key), (source, other) = rng.choice(places), rng.choice(places)
        if type(into[key]) is type(source[other]):
            into[key] = msgspec.json.decode(msgspec.json.encode(source[other]))
    try:
        return serialization.loads(msgspec.json.encode(tree))
    except ParseError:
        return None


def resolve(module, place):
    node = module
    for step in place:
        node = node[step] if isinstance(step, int) else getattr(node, step)
    return node


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), stage=st.sampled_from(STAGES))
@example(seed=68399, stage="position")
def test_no_module_makes_a_verifier_fail(name, seed, stage):
    module = damaged(name, seed)
    assume(module is not None)
    module = Module(stage, module.functions, module.entry)
    reported = diagnostics(module)
    for one in reported:
        assert resolve(module, one.place) is not None
        assert one.message.endswith(".")
        assert "\n" not in one.message
    assert serialization.loads(serialization.dumps(module)) == module
    assert len(structural_hash(module)) == 64
    if reported:
        with pytest.raises(VerifyError) as caught:
            verify(module)
        assert caught.value.diagnostics == reported
