"""The conformance suite: a correct backend passes, and each defective backend fails the intended test."""

import ctypes
import itertools
import os
import threading
import time
import unittest

import numpy as np
import pytest
from msgspec.structs import replace

from gossamer_backend import API_VERSION, Artifact, NativeKernel, Probe, get_num_threads
from gossamer_backend.arguments.size_equations import evaluate_size
from gossamer_backend.call.abi import prototype
from gossamer_backend.registry.requirements import (
    require_compilable,
    require_declared,
    require_own_target,
)
from gossamer_ir.errors import PluginError
from gossamer_ir.interchange.kernel_abi import OK, OUT_OF_BOUNDS
from gossamer_ir.interchange.serialization import dumps, loads
from gossamer_ir.interchange.signature import signature_of
from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.nodes import Guard
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_machine import Machine
from gossamer_testkit import BackendSuite, corpus_names, corpus_program

NOT_DECLARED = {"call.sin", "dtype.float16", "while"}
EVERYTHING = frozenset(
    word for name in corpus_names() for word in corpus_program(name).manifest.capabilities
)


class Interpreting:
    """A correct backend whose machine code is the reference interpreter."""

    name = "interpreting"
    api_version = API_VERSION
    version = "1.0"
    capabilities = EVERYTHING - NOT_DECLARED

    def targets(self):
        return ("interpreting", "interpreting:speed=slow")

    def probe(self, target):
        return Probe(is_usable=True, resolved=f"{target.backend}:speed=slow")

    def machine(self, target):
        return Machine()

    def require(self, module, target):
        require_compilable(self, module, target)

    def compile(self, module, target):
        self.require(module, target)
        checked = tuple(dict.fromkeys(n.buffer for n in walk(module) if isinstance(n, Guard)))
        signature, times = signature_of(module), (("ms", f"{time.perf_counter()}"),)
        return Artifact(
            self.name, self.version, target.text, signature, self.code(module), checked, times
        )

    def code(self, module):
        return dumps(module)

    def load(self, artifact):
        entry = prototype(artifact.signature)(self.entry(artifact))
        address = ctypes.cast(entry, ctypes.c_void_p).value
        return NativeKernel(artifact, address, keep_alive=(entry,))

    def entry(self, artifact):
        module, signature = loads(artifact.code), artifact.signature

        def entry(*values):
            arguments = dict(zip(signature.order, values[:-1], strict=True))
            arrays = views(signature, arguments)
            try:
                self.run(module, {**arguments, **arrays}, signature)
            except GuardFailed as error:
                values[-1].contents.failed_buffer = self.failed(artifact, error.buffer)
                return OUT_OF_BOUNDS
            return OK

        return entry

    def run(self, module, arguments, signature):
        run(module, arguments, chunks=2)

    def failed(self, artifact, buffer):
        return artifact.bounds_checked_buffers.index(buffer)


def views(signature, arguments):
    """An array for each pointer parameter."""
    scalars = {param.name: arguments[param.name] for param in signature.scalars}
    return {
        param.name: view(
            arguments[param.name],
            [evaluate_size(size, scalars, arrays={}) for size in param.shape],
            np.dtype(param.dtype),
        )
        for param in signature.buffers
    }


def view(address, shape, dtype):
    size = int(np.prod(shape)) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)


SMALL = "dtype.float32 dtype.int32 guard launch parallel prefetch vectors.fixed call.sqrt"


class Small(Interpreting):
    """Declares fewer capabilities, because an interpreter is slow."""

    capabilities = frozenset(SMALL.split())


class TestARightBackend(BackendSuite):
    backend = Small()
    targets = ("interpreting",)


class MisspelledCapability(Interpreting):
    capabilities = frozenset({"dtype.float23"})


class ListOfCapabilities(Interpreting):
    capabilities = sorted(EVERYTHING)


class OldApi(Interpreting):
    api_version = API_VERSION - 1


class NoLoad(Interpreting):
    load = None

    def __getattribute__(self, name):
        if name == "load":
            raise AttributeError(name)
        return super().__getattribute__(name)


class BadName(Interpreting):
    name = "Bad Name"


class NameWithOptions(Interpreting):
    name = "interpreting:speed=slow"


class NoVersion(Interpreting):
    version = ""


class ChangingVersion(Interpreting):
    count = itertools.count()

    @property
    def version(self):
        return f"{next(self.count)}"


class ForeignTargets(Interpreting):
    def targets(self):
        return ("another-target",)


class NoTargets(Interpreting):
    def targets(self):
        return ()


class NoReason(Interpreting):
    def probe(self, target):
        return Probe(is_usable=False)


class NoProbe(Interpreting):
    def probe(self, target):
        return True


class MoodyProbe(Interpreting):
    count = itertools.count()

    def probe(self, target):
        return Probe(is_usable=True, resolved=f"interpreting:speed={next(self.count)}")


class ResolvesToOthers(Interpreting):
    def probe(self, target):
        return Probe(is_usable=True, resolved="another-target")


class ResolvesOnAndOn(Interpreting):
    def probe(self, target):
        return Probe(is_usable=True, resolved=f"interpreting:speed={target.option('speed')}x")


class NoMachine(Interpreting):
    def machine(self, target):
        return "a large one"


class MoodyMachine(Interpreting):
    count = itertools.count(1)

    def machine(self, target):
        return Machine(cores=next(self.count))


class UndeclaredScalableVectors(Interpreting):
    capabilities = Interpreting.capabilities - {"vectors.scalable"}

    def machine(self, target):
        return Machine(is_scalable=True)


class DifferentEachTime(Interpreting):
    count = itertools.count()

    def code(self, module):
        return dumps(module) + b" " * next(self.count)


class DifferentInEachProcess(Interpreting):
    def code(self, module):
        return dumps(module) + b" " * (
            hash(module.entry + str(os.environ.get("PYTHONHASHSEED"))) % 997
        )


class DifferentAfterOthers(Interpreting):
    before = ""

    def code(self, module):
        before, self.before = self.before, module.entry
        return dumps(module) + before.encode()


class SharedState(Interpreting):
    """Compiles the module that another thread stored in a shared variable."""

    def compile(self, module, target):
        self.current = module
        time.sleep(0.002)
        return super().compile(self.current, target)


class SaysAnotherVersion(Interpreting):
    def compile(self, module, target):
        return replace(super().compile(module, target), backend_version="0.9")


class SaysAnotherTarget(Interpreting):
    def compile(self, module, target):
        return replace(super().compile(module, target), target="another-target")


class SaysAnotherSignature(Interpreting):
    def compile(self, module, target):
        made = super().compile(module, target)
        return replace(made, signature=replace(made.signature, entry="other"))


class ForgetsGuards(Interpreting):
    def compile(self, module, target):
        return replace(super().compile(module, target), bounds_checked_buffers=())


class MakesText(Interpreting):
    def compile(self, module, target):
        return "code"


class LosesCode(Interpreting):
    """Loads only artifacts that it has made itself, not copies."""

    def __init__(self):
        self.made = []

    def code(self, module):
        self.made.append(dumps(module))
        return self.made[-1]

    def load(self, artifact):
        is_known = any(code is artifact.code for code in self.made)
        return super().load(artifact if is_known else replace(artifact, code=self.made[0] + b" "))


class AcceptsUndeclared(Interpreting):
    def require(self, module, target):
        require_own_target(self, target)
        verify(module)


class RefusesWithoutAWord(Interpreting):
    def require(self, module, target):
        try:
            require_compilable(self, module, target)
        except PluginError:
            raise PluginError("plugin.undeclared", "No.") from None


class AcceptsWrongModules(Interpreting):
    def require(self, module, target):
        require_own_target(self, target)
        require_declared(self, module)


class TripsOverWrongModules(Interpreting):
    def require(self, module, target):
        if "missing" in dumps(module).decode():
            raise KeyError("missing")
        {function.name: function for function in module.functions}[module.entry]
        super().require(module, target)


class DiesOfWrongModules(Interpreting):
    def require(self, module, target):
        if module.stage != "flat":
            os._exit(9)
        super().require(module, target)


class TakesAnyTarget(Interpreting):
    def require(self, module, target):
        require_declared(self, module)
        verify(module)


class OffByOne(Interpreting):
    def run(self, module, arguments, signature):
        super().run(module, arguments, signature)
        for param in signature.buffers:
            if param.is_written and arguments[param.name].size > 40:
                arguments[param.name].reshape(-1)[40] += 1


class WritesInputs(Interpreting):
    def run(self, module, arguments, signature):
        super().run(module, arguments, signature)
        for param in signature.buffers:
            if not param.is_written:
                arguments[param.name][...] = 0


class DoesNothing(Interpreting):
    def run(self, module, arguments, signature):
        pass


class IgnoresGuards(Interpreting):
    def run(self, module, arguments, signature):
        try:
            super().run(module, arguments, signature)
        except GuardFailed:
            return


class NamesAnotherBuffer(Interpreting):
    def failed(self, artifact, buffer):
        return 0

    def compile(self, module, target):
        made = super().compile(module, target)
        return replace(made, bounds_checked_buffers=("Z", *made.bounds_checked_buffers))


class OneCallAtATime(Interpreting):
    """Concurrent calls disturb each other."""

    def __init__(self):
        self.lock = threading.Lock()

    def run(self, module, arguments, signature):
        is_alone = self.lock.acquire(blocking=False)
        super().run(module, arguments, signature)
        time.sleep(0.002)
        if is_alone:
            self.lock.release()
            return
        for param in signature.buffers:
            if param.is_written:
                arguments[param.name][...] = 0


class CountsThreads(Interpreting):
    """Results depend on the number of threads."""

    def run(self, module, arguments, signature):
        super().run(module, arguments, signature)
        for param in signature.buffers:
            if param.is_written and arguments[param.name].size:
                arguments[param.name].reshape(-1)[0] += get_num_threads()


IT = "test_it_"
PROBE = f"{IT}says_whether_a_target_works_here"
MACHINE = f"{IT}describes_the_machine_of_a_target"
CORRECT = "test_a_module_of_the_corpus_is_correct"
SAYS = "test_an_artifact_says_what_it_is"
WRONG_MODULES = "test_wrong_modules_are_refused"
UNDECLARED = "test_what_it_does_not_declare_is_refused_by_name"
WRONG = {
    MisspelledCapability: (f"{IT[:-1]}s_capabilities_are_words_that_exist", "dtype.float23"),
    ListOfCapabilities: (f"{IT[:-1]}s_capabilities_are_words_that_exist", "not a frozenset"),
    OldApi: (
        f"{IT}is_a_backend_of_this_version_of_the_protocol",
        f"version {API_VERSION - 1} of the protocol",
    ),
    NoLoad: (f"{IT}is_a_backend_of_this_version_of_the_protocol", "lacks members"),
    BadName: (f"{IT[:-1]}s_name_can_stand_in_a_target", "cannot stand in a target"),
    NameWithOptions: (f"{IT[:-1]}s_name_can_stand_in_a_target", "has options in it"),
    NoVersion: (f"{IT[:-1]}s_version_is_text_that_stays", "not text"),
    ChangingVersion: (f"{IT[:-1]}s_version_is_text_that_stays", "another one each time"),
    ForeignTargets: (f"{IT}offers_targets_of_its_own", "of another backend"),
    NoTargets: (f"{IT}offers_targets_of_its_own", "non-empty tuple of targets"),
    NoReason: (PROBE, "does not say why"),
    NoProbe: (PROBE, "expected a Probe"),
    MoodyProbe: (PROBE, "something else each time"),
    ResolvesToOthers: (PROBE, "not its own"),
    ResolvesOnAndOn: (PROBE, "is resolved to"),
    NoMachine: (MACHINE, "expected a Machine"),
    MoodyMachine: (MACHINE, "another one each time"),
    UndeclaredScalableVectors: (MACHINE, "without the capability vectors.scalable"),
    DifferentEachTime: (
        "test_code_is_the_same_each_time",
        "Compiled twice, these parts of .* differ: code",
    ),
    DifferentInEachProcess: ("test_another_process_makes_the_same_code", "makes something else of"),
    DifferentAfterOthers: ("test_another_process_makes_the_same_code", "makes something else of"),
    SharedState: ("test_two_threads_may_compile_at_once", "these differ"),
    SaysAnotherVersion: (SAYS, "made it"),
    SaysAnotherTarget: (SAYS, "it is for another-target"),
    SaysAnotherSignature: (SAYS, "signature is not the module's"),
    ForgetsGuards: (SAYS, "does not list the buffers with bounds checks X"),
    MakesText: (SAYS, "expected an Artifact"),
    LosesCode: ("test_an_artifact_survives_serialization", "loaded from another artifact"),
    AcceptsUndeclared: (UNDECLARED, "It compiles what needs"),
    RefusesWithoutAWord: (UNDECLARED, "does not name"),
    AcceptsWrongModules: (WRONG_MODULES, "accepted"),
    TripsOverWrongModules: (WRONG_MODULES, "no entry: KeyError"),
    DiesOfWrongModules: (WRONG_MODULES, "ended with code 9 at another stage"),
    TakesAnyTarget: ("test_a_target_of_another_backend_is_refused", "target of another backend"),
    OffByOne: (CORRECT, r"The reference interpreter agrees with the oracle"),
    WritesInputs: (CORRECT, "expected"),
    DoesNothing: (CORRECT, "expected"),
    IgnoresGuards: (CORRECT, "the call succeeds; expected the error kernel.out_of_bounds"),
    NamesAnotherBuffer: (CORRECT, "does not name X"),
    OneCallAtATime: ("test_two_threads_may_call_one_kernel", "two threads at once"),
    CountsThreads: ("test_the_number_of_threads_changes_nothing", "With 2 threads"),
}
"""Each defective backend, the test that must detect it, and a part of the message."""

SAMPLES = {
    "program": ("copy_float32", "guard", "spmv_float64_int32_as_written"),
    "covered": ("copy_float32", "guard"),
    "parallel": ("parallel_weighted",),
    "undeclared": ("sin_float32", "half_float16"),
    "target": ("interpreting",),
}


def run_test(backend, name):
    """Runs one test of the suite on a backend with sample parameters."""
    suite = type("Suite", (BackendSuite,), {"backend": backend, "targets": ("interpreting",)})
    test = getattr(suite(), name)
    names = test.__func__.__code__.co_varnames[1 : test.__func__.__code__.co_argcount]
    for values in itertools.product(*(SAMPLES[name] for name in names)):
        test(**dict(zip(names, values, strict=True)))


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_a_wrong_backend_fails(kind):
    name, message = WRONG[kind]
    with pytest.raises(AssertionError, match=message):
        run_test(kind(), name)


@pytest.mark.parametrize("name", sorted({name for name, _ in WRONG.values()}))
def test_a_right_backend_passes(name):
    run_test(Interpreting(), name)


def test_every_test_of_the_suite_catches_something():
    tests = {name for name in dir(BackendSuite) if name.startswith("test_")}
    assert tests == {name for name, _ in WRONG.values()}


class Unusable(Interpreting):
    def probe(self, target):
        return Probe(is_usable=False, reason="There is no such machine.")


def test_a_target_that_does_not_work_here_is_skipped_with_the_reason():
    with pytest.raises(unittest.SkipTest, match="There is no such machine"):
        run_test(Unusable(), CORRECT)
    run_test(Unusable(), "test_code_is_the_same_each_time")


def test_what_is_not_covered_is_skipped_with_the_words():
    suite = type("Suite", (BackendSuite,), {"backend": Interpreting()})()
    with pytest.raises(unittest.SkipTest, match=r"interpreting does not declare call\.sin"):
        suite.test_a_module_of_the_corpus_is_correct("sin_float32", "interpreting")


class Empty(Interpreting):
    capabilities = frozenset({"dtype.int8"})


def test_a_backend_that_declares_nothing_has_little_to_prove():
    suite = type("Suite", (BackendSuite,), {"backend": Empty()})
    assert "copy_float32" not in suite._parameters()["covered"]
    assert "lets" in suite._parameters()["covered"]
    assert "copy_float32" in suite._parameters()["undeclared"]


def test_a_test_without_programs_is_skipped_with_the_reason():
    suite = type("Suite", (BackendSuite,), {"backend": Empty()})()
    (name,) = suite._parameters()["parallel"]
    with pytest.raises(unittest.SkipTest, match="no program of the corpus fits the capabilities"):
        suite.test_the_number_of_threads_changes_nothing(name, "interpreting")


def test_targets_are_those_that_the_backend_offers_unless_they_are_given():
    suite = type("Suite", (BackendSuite,), {"backend": Interpreting()})
    assert suite.target_texts() == ("interpreting", "interpreting:speed=slow")
