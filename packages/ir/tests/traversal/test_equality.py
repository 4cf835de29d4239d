"""Equality of modules up to renaming, and the hash that agrees with it."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from gossamer_ir import nodes
from gossamer_ir.interchange import serialization
from gossamer_ir.nodes import Module
from gossamer_ir.traversal.equality import structural_equal, structural_hash
from gossamer_ir.traversal.fields import LABEL_FIELDS, name_fields
from gossamer_ir.traversal.walk import walk

FOLDER = Path(__file__).parents[1] / "samples"
STAGES = ("coordinate", "position", "loop", "flat")
NODES = [
    kind
    for kind in vars(nodes).values()
    if isinstance(kind, type) and issubclass(kind, nodes.Node) and kind is not nodes.Node
]
NAMES = {kind.__name__: name_fields(kind) for kind in NODES}
KEPT = {"csrmm", "csrmm_i"}
"""The names of functions, blocks and iterations in the samples."""
CALLS = 4
"""The maximum number of Python calls for each node; more would be slow."""


def sample(stage):
    return serialization.loads((FOLDER / f"0.1-spmm-{stage}.json").read_bytes())


def names_of(node):
    """Every name that may differ, found in the encoded text and not in the nodes."""
    all_names = set()

    def collect(value):
        if isinstance(value, dict):
            for field in NAMES.get(value.get("type", ""), ()):
                names = value[field]
                all_names.update([names] if isinstance(names, str) else names or [])
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    collect(msgspec.json.decode(msgspec.json.encode(node)))
    return all_names


def renamed(module, new_names):
    """The module with names replaced as quoted strings of its text."""
    quoted = re.compile(r'"(\w+)"(?!:)')
    text = serialization.dumps(module).decode()
    return serialization.loads(quoted.sub(lambda hit: f'"{new_names.get(hit[1], hit[1])}"', text))


@pytest.mark.parametrize("stage", STAGES)
def test_renaming_one_to_one_changes_nothing(stage):
    module = sample(stage)
    names = sorted(names_of(module) - KEPT)
    assert len(names) > 10
    other = renamed(module, {name: f"q{number}" for number, name in enumerate(reversed(names))})
    assert other != module
    assert structural_equal(module, other)
    assert structural_hash(module) == structural_hash(other)


def test_exchanging_two_names_everywhere_changes_nothing_and_in_one_place_does():
    module = sample("coordinate")
    assert structural_equal(module, renamed(module, {"i": "j", "j": "i"}))
    text = serialization.dumps(module).decode()
    wrong = serialization.loads(text.replace('"buffer":"B"', '"buffer":"A"'))
    assert not structural_equal(module, wrong)
    assert structural_hash(module) != structural_hash(wrong)


def test_two_names_that_become_one_are_a_difference():
    module = sample("loop")
    assert not structural_equal(module, renamed(module, {"vi": "vk"}))


DIFFERENCES = {
    "the iteration's name": ("coordinate", '"Iteration","name":"csrmm"', '"Iteration","name":"x"'),
    "the block's name": ("loop", '"Block","name":"csrmm"', '"Block","name":"x"'),
    "the function's name": ("flat", '"csrmm_i"', '"csrmm_j"'),
    "an annotation": ("coordinate", '["tir.noalias",true]', '["tir.noalias",false]'),
    "an annotation's type": ("coordinate", '["tir.noalias",true]', '["tir.noalias",1]'),
    "the kinds": ("coordinate", '"SRS"', '"SSS"'),
    "a dtype": ("coordinate", "float32", "float64"),
    "a constant": ("coordinate", '"0.0"', '"-0.0"'),
    "an operator": ("position", '"op":"mul"', '"op":"add"'),
    "a flag": ("coordinate", '"unique":true', '"unique":false'),
    "a scope": ("flat", '"scope":"local"', '"scope":"global"'),
    "the stage": ("flat", '"stage":"flat"', '"stage":"loop"'),
}


@pytest.mark.parametrize(("stage", "old", "new"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_what_is_not_a_renaming_is_a_difference(stage, old, new):
    module = sample(stage)
    text = serialization.dumps(module).decode()
    assert old in text
    other = serialization.loads(text.replace(old, new))
    assert not structural_equal(module, other)
    assert structural_hash(module) != structural_hash(other)


def test_each_function_has_names_of_its_own():
    module = sample("flat")
    entry, inner = module.functions
    (only,) = renamed(
        Module("flat", (inner,), "csrmm_i"), {"i": "row", "a": "b", "b": "a"}
    ).functions
    assert structural_equal(module, Module("flat", (entry, only), "csrmm"))


def test_the_stages_of_one_program_are_four_hashes():
    assert len({structural_hash(sample(stage)) for stage in STAGES}) == 4


def test_the_hash_is_the_same_in_another_process():
    code = (
        "import pathlib, sys; from gossamer_ir.interchange import serialization; "
        "from gossamer_ir.traversal import equality; "
        "print(equality.structural_hash(serialization.loads(pathlib.Path(sys.argv[1]).read_bytes())))"
    )
    path = FOLDER / "0.1-every-node.json"
    expected = structural_hash(serialization.loads(path.read_bytes()))
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == expected


TEXT_FIELDS = {
    "Const": {"dtype", "text"},
    "Var": {"dtype"},
    "Cast": {"dtype"},
    "Reinterpret": {"dtype"},
    "Call": {"function", "dtype"},
    "Load": {"dtype"},
    "Iteration": {"kinds"},
    "ParallelFor": {"function"},
    "Launch": {"function"},
    "DenseVaried": {"indptr_dtype"},
    "CompressedFixed": {"indices_dtype"},
    "CompressedVaried": {"indptr_dtype", "indices_dtype"},
    "BitmaskVaried": {"indptr_dtype", "words_dtype"},
    "SparseBuffer": {"dtype"},
    "Buffer": {"dtype"},
    "Param": {"dtype"},
    "Function": {"name"},
    "Module": {"entry"},
    "FormatDescription": {"name"},
}


def test_every_text_that_may_not_be_renamed_is_listed():
    texts = ("str", "str | None", "tuple[str, ...]")
    for kind in NODES:
        fields = {field for field, hint in kind.__annotations__.items() if hint in texts}
        assert fields == TEXT_FIELDS.get(kind.__name__, set()), kind


def test_labels_are_the_names_of_blocks_and_iterations():
    labels = {kind.__name__: LABEL_FIELDS[kind] for kind in NODES}
    assert {kind: fields for kind, fields in labels.items() if fields} == {
        "Block": ("name",), "Iteration": ("name",),
    }  # fmt: skip


def test_hashing_takes_a_few_calls_for_each_node():
    module, calls = sample("flat"), Counter()
    sys.setprofile(lambda frame, event, argument: calls.update([event]))
    structural_hash(module)
    sys.setprofile(None)
    assert calls["call"] < CALLS * sum(1 for _ in walk(module))
