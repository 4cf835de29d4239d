"""The testkit's conformance suite, with kernels in the interpreter of PTX.

One thread of Python interprets all threads, so that programs are a sample: one of each kind, with dtypes and
sizes that take turns. `--all-programs` runs the suite with all of them, which takes some minutes.
"""

import re
from collections import Counter
from itertools import cycle

import pytest
from assembler import assembled

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.records import Target
from gossamer_testkit import BackendSuite, corpus_names, corpus_program

TARGET = "cuda-mma-sp:driver=interpreter"
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
PARAMETER = re.compile(r"_(?:(?:u?int\d+|float\d+|bfloat16|bool)(?:x\d+)?|\d+(?:x\d+)?)(?=_|$)")
"""A dtype or a size in the name of a program."""
STEPS = {
    "test_an_artifact_says_what_it_is": 4,
    "test_an_artifact_survives_serialization": 4,
    "test_two_threads_may_call_one_kernel": 24,
    "test_the_number_of_threads_changes_nothing": 8,
}
"""Tests that have one of so many programs of the sample: those that run kernels several times, and those that
depend little on the program."""
ASSEMBLED = 4
"""The assembler has one of so many programs of the sample."""
LONG = ("test_another_process_makes_the_same_code", "tiled_csr_float32_int32_33")
"""A test that compiles all programs in two processes, and a program with more rows than others: half a minute
each, so that they run with `--all-programs` only."""
REFUSED = {
    "async_copy_float32": "lower.verify_stores.unordered",
    "parallel_allocate": "llvm.allocate.device",
    "shuffle_float32": "lower.verify_stores.unordered",
}
"""Programs whose threads are not proved to be apart, or that need memory which threads of a device do not
have."""


class Suite(BackendSuite):
    backend = CudaBackend()
    targets = (TARGET,)

    @classmethod
    def all_covered(cls):
        return [program for program in super().all_covered() if program.name not in REFUSED]


def kind_of(name):
    """The name of a program without dtypes and sizes."""
    return PARAMETER.sub("", name)


def sample():
    """The name of one program of each kind."""
    kinds = {}
    for name in corpus_names():
        kinds.setdefault(kind_of(name), []).append(name)
    return [names[number % len(names)] for number, names in enumerate(kinds.values())]


def checks(*, has_all):
    """The checks with the programs of the sample, and those without a program."""
    names, numbers = sample(), Counter()
    for check in Suite.all_checks():
        program = next((value for key, value in check.arguments.items() if key != "target"), None)
        if program in REFUSED or (not has_all and {program, check.method} & {*LONG}):
            continue
        if not has_all and program is not None:
            if program not in names:
                continue
            numbers[check.method] += 1
            if (numbers[check.method] - 1) % STEPS.get(check.method, 1):
                continue
        yield check


def pytest_generate_tests(metafunc):
    has_all = metafunc.config.getoption("all_programs", default=False)
    if "check" in metafunc.fixturenames:
        chosen = list(checks(has_all=has_all))
        metafunc.parametrize("check", chosen, ids=[check.name for check in chosen])
    if "architecture" in metafunc.fixturenames:
        covered = {program.name for program in Suite.all_covered()}
        names = corpus_names() if has_all else sample()[::ASSEMBLED]
        pairs = zip([name for name in names if name in covered], cycle(ARCHITECTURES), strict=False)
        metafunc.parametrize(("program", "architecture"), list(pairs))


def test_a_check_of_the_suite_passes(check):
    Suite().run_check(check)


def test_ptxas_assembles_a_module_of_the_corpus(program, architecture, tmp_path):
    target = Target.parse(f"cuda-mma-sp:arch={architecture}")
    artifact = Suite.backend.compile(corpus_program(program).module, target)
    text = DeviceCode.decode(artifact.code).ptx
    assert text.count(".entry") == assembled(text, architecture, tmp_path).count("Compiling entry")


@pytest.mark.parametrize("name", REFUSED)
def test_programs_outside_of_the_suite_are_refused(name):
    assert not corpus_program(name).lacks(Suite.backend.capabilities)
    with pytest.raises(UnsupportedError) as caught:
        Suite.backend.compile(corpus_program(name).module, Target.parse(TARGET))
    assert caught.value.code == REFUSED[name]


def test_the_sample_has_each_kind_of_program_and_check():
    assert {kind_of(name) for name in sample()} == {kind_of(name) for name in corpus_names()}
    assert kind_of("cast_int8x16_to_float32") == "cast_to"
    every = list(Suite.all_checks())
    methods = {check.method for check in checks(has_all=False)}
    assert methods == {check.method for check in every} - {*LONG}
    left_out = [check for check in every if REFUSED.keys() & {*check.arguments.values()}]
    assert len(list(checks(has_all=True))) == len(every) - len(left_out)
