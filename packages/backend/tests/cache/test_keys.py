"""Keys of the artifact cache: what they depend on, and versions of the source files in them."""

import os
import subprocess
import sys

import pytest

from gossamer_backend import object_key, request_key
from gossamer_ir.interchange.records import Schedule, Step, Target
from gossamer_ir.nodes import Function, Module, Param
from gossamer_machine import Machine

MODULE = Module("coordinate", (Function("f", (Param("x", "handle"),), ()),), "f")
OTHER = Module("coordinate", (Function("g", (Param("x", "handle"),), ()),), "g")
SPLIT = Schedule(loop=(Step("split", {"loop": "i", "factors": (None, 4)}),))
BASE = {
    "module": MODULE,
    "schedule": Schedule(),
    "target": "toy:cpu=a",
    "machine": Machine(),
    "versions": {"ir": "1", "lower": "2"},
}
CHANGES = {
    "module": OTHER,
    "schedule": SPLIT,
    "target": "toy:cpu=b",
    "machine": Machine(vector_registers=16),
    "versions": {"ir": "1", "lower": "3"},
}


def key_of(**changes):
    options = BASE | changes
    return request_key(**options)


@pytest.mark.parametrize(("part", "value"), CHANGES.items())
def test_each_part_changes_the_request_key(part, value):
    assert key_of(**{part: value}) != key_of()


def test_equal_inputs_have_one_key():
    assert key_of() == key_of(target=Target("toy", (("cpu", "a"),)))
    assert key_of() == key_of(versions={"lower": "2", "ir": "1"})
    assert len({key_of(versions={"ab": "c"}), key_of(versions={"a": "bc"})}) == 2


def test_the_two_kinds_of_key_differ():
    options = {"target": "toy", "versions": {}}
    assert object_key(MODULE, **options) != request_key(
        MODULE, Schedule(), machine=Machine(), **options
    )
    assert object_key(MODULE, **options) != object_key(OTHER, **options)


def test_keys_are_the_same_in_another_process():
    script = (
        "from gossamer_backend import object_key\n"
        "from gossamer_ir.nodes import Function, Module, Param\n"
        "f = Function('f', (Param('x', 'handle'),), ())\n"
        "print(object_key(Module('coordinate', (f,), 'f'), target='toy', versions={'a': '1'}))\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": "123"}
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert process.stdout.strip() == object_key(MODULE, target="toy", versions={"a": "1"})
