"""What the parts of the suite share: programs and targets as parameters, artifacts made once."""

from __future__ import annotations

import unittest
from typing import Any, ClassVar, NoReturn

from gossamer_backend import Artifact, Backend, Kernel
from gossamer_ir.interchange.records import Target
from gossamer_testkit.corpus.program import Program, corpus_names, corpus_program


class Checks:
    """Gives the parameters of its test methods their values, and keeps what it compiled."""

    backend: ClassVar[Backend]
    targets: ClassVar[tuple[str, ...]] = ()
    _artifacts: ClassVar[dict[tuple[str, str], Artifact]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._artifacts = {}

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """The hook by which pytest asks for the parameters of each method."""
        for name, values in self._parameters().items():
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, values)

    @classmethod
    def _parameters(cls) -> dict[str, tuple[str, ...]]:
        """The values of each parameter that a test method may have: `target`; of programs the names of
        all, of those that the backend covers, of those with a parallel loop among these, and of
        those that need what it does not declare."""
        covered = cls.all_covered()
        names = tuple(found.name for found in covered)
        return {
            "target": cls.target_texts(),
            "program": corpus_names(),
            "covered": names,
            "parallel": tuple(
                found.name for found in covered if "parallel" in found.manifest.capabilities
            ),
            "undeclared": tuple(name for name in corpus_names() if name not in names),
        }

    @classmethod
    def target_texts(cls) -> tuple[str, ...]:
        """The targets that are tested."""
        return cls.targets or cls.backend.targets()

    @classmethod
    def all_covered(cls) -> list[Program]:
        """Every program that the backend's capabilities cover."""
        programs = map(corpus_program, corpus_names())
        return [found for found in programs if not found.lacks(cls.backend.capabilities)]

    @classmethod
    def artifact(cls, program: Program, target: str) -> Artifact:
        """The program compiled, once for all tests of the class."""
        key = (program.name, target)
        if key not in cls._artifacts:
            cls._artifacts[key] = cls.compiled(program, target)
        return cls._artifacts[key]

    @classmethod
    def compiled(cls, program: Program, target: str) -> Artifact:
        """The program compiled anew, from a module of its own."""
        return cls.backend.compile(program.module, Target.parse(target))

    @classmethod
    def kernel(cls, program: Program, target: str) -> Kernel:
        """The program ready to run; skips the test where the target does not work here."""
        probe = cls.backend.probe(Target.parse(target))
        if not probe.usable:
            skip(f"{target} does not work on this machine: {probe.reason}")
        return cls.backend.load(cls.artifact(program, target))


def skip(reason: str) -> NoReturn:
    """Leaves a test out; pytest knows the exception of unittest, and nothing here needs pytest."""
    raise unittest.SkipTest(reason)


def fail(message: str) -> NoReturn:
    """Fails a test with a sentence."""
    raise AssertionError(message)


def require(condition: object, message: str) -> None:
    """Fails a test with a sentence where the condition does not hold."""
    if not condition:
        fail(message)
