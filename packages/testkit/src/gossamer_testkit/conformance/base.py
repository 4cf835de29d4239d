"""The base of all parts of the suite: parametrizes tests and caches artifacts."""

from __future__ import annotations

import inspect
import unittest
from collections.abc import Iterator
from itertools import product
from typing import Any, ClassVar, NoReturn

import msgspec

from gossamer_backend import Artifact, Backend, Kernel
from gossamer_ir.interchange.records import Target
from gossamer_testkit.corpus.program import Program, corpus_names, corpus_program

NO_PROGRAM = "none"
"""The parameter of a test for which the corpus has no program: without it, pytest would select no test and
print no reason."""


class SuiteCheck(msgspec.Struct, frozen=True):
    """A test method of a suite, and its arguments.

    >>> SuiteCheck("test_it_is_fast", {"target": "mine"}).name
    'test_it_is_fast[mine]'
    """

    method: str
    arguments: dict[str, str]

    @property
    def name(self) -> str:
        """The name that pytest would give to it."""
        arguments = "-".join(self.arguments.values())
        return f"{self.method}[{arguments}]" if arguments else self.method


class Checks:
    """Parametrizes its test methods over programs and targets, and caches compiled artifacts."""

    backend: ClassVar[Backend]
    targets: ClassVar[tuple[str, ...]] = ()
    _artifacts: ClassVar[dict[tuple[str, str], Artifact]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # Not those of the class above: another backend may have targets of the same names.
        cls._artifacts = {}

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Parametrize each test method."""
        for name, values in self._parameters().items():
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, values)

    @classmethod
    def _parameters(cls) -> dict[str, tuple[str, ...]]:
        """Return the values of each parameter that a test method may have.

        `target`: targets; `program`: the names of all programs; `covered`: those that the backend's
        capabilities cover; `parallel`: those of the covered ones that have a parallel loop; `undeclared`:
        those that need capabilities which the backend does not declare.
        """
        covered = {program.name: program.manifest.capabilities for program in cls.all_covered()}
        programs = {
            "program": corpus_names(),
            "covered": tuple(covered),
            "parallel": tuple(name for name, words in covered.items() if "parallel" in words),
            "undeclared": tuple(name for name in corpus_names() if name not in covered),
        }
        chosen = {parameter: names or (NO_PROGRAM,) for parameter, names in programs.items()}
        return {"target": cls.target_texts(), **chosen}

    @classmethod
    def all_checks(cls) -> Iterator[SuiteCheck]:
        """Yield the tests with all their arguments, for callers that are not pytest.

        Call `run_check` with each of them.
        """
        values = cls._parameters()
        for method in sorted(name for name in dir(cls) if name.startswith("test_")):
            names = list(inspect.signature(getattr(cls, method)).parameters)[1:]
            for arguments in product(*(values[name] for name in names)):
                yield SuiteCheck(method, dict(zip(names, arguments, strict=True)))

    def run_check(self, check: SuiteCheck) -> None:
        """Run a test.

        Raises `AssertionError` if it fails, and `unittest.SkipTest` if it cannot run.
        """
        getattr(self, check.method)(**check.arguments)

    @classmethod
    def target_texts(cls) -> tuple[str, ...]:
        """Return the targets to test."""
        return cls.targets or cls.backend.targets()

    @classmethod
    def all_covered(cls) -> list[Program]:
        """Return the programs that the backend's capabilities cover."""
        programs = map(corpus_program, corpus_names())
        return [program for program in programs if not program.lacks(cls.backend.capabilities)]

    @classmethod
    def artifact(cls, program: Program, target: str) -> Artifact:
        """Return the compiled program; compiled once for all tests of the class."""
        key = (program.name, target)
        if key not in cls._artifacts:
            cls._artifacts[key] = cls.compile_again(program, target)
        return cls._artifacts[key]

    @classmethod
    def compile_again(cls, program: Program, target: str) -> Artifact:
        """Return the program compiled again, from a new copy of its module."""
        return cls.backend.compile(program.module, Target.parse(target))

    @classmethod
    def kernel(cls, program: Program, target: str) -> Kernel:
        """Return the loaded program; skip the test if the target does not work on this machine."""
        probe = cls.backend.probe(Target.parse(target))
        if not probe.is_usable:
            skip(f"{target} does not work on this machine: {probe.reason}")
        return cls.backend.load(cls.artifact(program, target))


def selected_program(name: str) -> Program:
    """Return a program of the corpus; skips the test if none fits the capabilities of the backend."""
    if name == NO_PROGRAM:
        skip("no program of the corpus fits the capabilities that the backend declares")
    return corpus_program(name)


def skip(reason: str) -> NoReturn:
    """Skip a test. Raise the exception of unittest, which pytest handles, to avoid importing pytest."""
    raise unittest.SkipTest(reason)


def fail(message: str) -> NoReturn:
    """Fail a test with a message."""
    raise AssertionError(message)


def require(condition: object, message: str) -> None:
    """Fail a test with a message unless the condition holds."""
    if not condition:
        fail(message)
