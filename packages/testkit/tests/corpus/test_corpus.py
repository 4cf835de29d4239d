"""The corpus: its files load, its manifests are correct, and its oracles agree with the interpreter."""

from typing import Literal, get_args, get_origin

import msgspec
import numpy as np
import pytest

from gossamer_backend import required_capabilities
from gossamer_ir.core.dtypes import SCALARS
from gossamer_ir.core.math_functions import FUNCTIONS
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.serialization import dumps
from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.nodes import EXPRS, STMTS, Block, Call, Cast, Combine, Fact, Iteration, Search
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_testkit import corpus_names, corpus_program
from gossamer_testkit.corpus.case import call, differences, fresh, same_bytes
from gossamer_testkit.corpus.inputs import INPUT_GENERATORS
from gossamer_testkit.corpus.oracles import ORACLES

NAMES = corpus_names()
NOT_FLAT = {Block, Combine, Iteration, Search}


@pytest.mark.parametrize("name", NAMES)
def test_a_module_is_valid_and_its_manifest_true(name):
    program = corpus_program(name)
    module = verify(program.module)
    assert dumps(module) == program.text
    assert module.stage == "flat"
    assert set(program.manifest.capabilities) == required_capabilities(module)
    assert program.manifest.says.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter_agrees_with_the_oracle(name):
    program = corpus_program(name)
    module = program.module
    for case in program.cases():
        if case.raises is None:
            result = call(lambda **values: run(module, values), case)
            assert differences(case, result, program.expected_results(case)) == [], case.name
        elif case.raises == "kernel.out_of_bounds":
            with pytest.raises(GuardFailed, match=case.names):
                run(module, fresh(case))


@pytest.mark.parametrize("name", NAMES)
def test_cases_have_names_and_are_the_same_each_time(name):
    program = corpus_program(name)
    first, second = list(program.cases()), list(program.cases())
    assert len({case.name for case in first}) == len(first) > 0
    params = {param.name for param in program.module.functions[0].params}
    for one, other in zip(first, second, strict=True):
        arrays = [
            {key: value for key, value in case.values.items() if isinstance(value, np.ndarray)}
            for case in (one, other)
        ]
        assert same_bytes(*arrays)
        assert set(one.values) == params


def test_every_node_of_the_flat_stage_occurs():
    types = {type(node) for name in NAMES for node in walk(corpus_program(name).module)}
    assert {*EXPRS, *STMTS} - NOT_FLAT - types == set()


def test_every_maker_and_every_oracle_is_used():
    manifests = [corpus_program(name).manifest for name in NAMES]
    assert {manifest.cases for manifest in manifests} == set(INPUT_GENERATORS)
    assert {manifest.oracle for manifest in manifests} == set(ORACLES)


LOWERED = {("For", "kind"): {"parallel", "vectorized", "unrolled"}}
"""Kinds of loops that the flat stage does not have."""


FUNCTIONS_LACKING = {"find_nth_bit", "exp2", "expm1", "log10", "log1p", "log2", "rsqrt", "sigmoid"}
"""Functions that the corpus lacks: `lower_math` computes each of them from others."""


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        pytest.param(kind, field, id=f"{kind.__name__}.{field.name}")
        for kind in (*EXPRS, *STMTS)
        for field in msgspec.structs.fields(kind)
        if get_origin(field.type) is Literal and kind not in NOT_FLAT
    ],
)
def test_every_operation_of_a_node_occurs(kind, field):
    names = {
        getattr(node, field.name)
        for name in NAMES
        for node in walk(corpus_program(name).module)
        if isinstance(node, kind)
    }
    key = kind.__name__, field.name
    assert set(get_args(field.type)) - names == LOWERED.get(key, set())


def test_every_function_fact_and_dtype_of_a_cast_occurs():
    modules = [corpus_program(name).module for name in NAMES]
    nodes = [node for module in modules for node in walk(module)]
    functions = {node.function for node in nodes if isinstance(node, Call)}
    facts = {type(fact) for module in modules for each in module.functions for fact in each.facts}
    dtypes = {node.dtype for node in nodes if isinstance(node, Cast)}
    assert FUNCTIONS.keys() - functions == FUNCTIONS_LACKING
    assert set(get_args(Fact)) - facts == set()
    assert SCALARS.keys() - dtypes == {"handle"}


def test_zero_extents_are_among_the_cases_wherever_there_is_an_extent():
    without = []
    for name in NAMES:
        sizes = [
            [value for key, value in case.values.items() if key in ("n", "m")]
            for case in corpus_program(name).cases()
        ]
        if sizes[0] and not any(0 in size for size in sizes):
            without.append(name)
    assert without == []


def test_an_unknown_program_is_named():
    with pytest.raises(ArgumentError) as caught:
        corpus_program("nothing")
    assert caught.value.code == "corpus.unknown"
