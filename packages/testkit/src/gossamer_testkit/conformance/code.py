"""Checks that compilation is deterministic and that artifacts are complete."""

from __future__ import annotations

from gossamer_backend import Artifact
from gossamer_ir.core.statement_kinds import CHECKING_STMTS
from gossamer_ir.interchange.records import Target
from gossamer_ir.interchange.signature import signature_of
from gossamer_ir.traversal.walk import collect
from gossamer_testkit.conformance.base import Checks, require, selected_program
from gossamer_testkit.conformance.fingerprint import COMPARED_PARTS, fingerprint
from gossamer_testkit.conformance.isolation import in_another_process


class CodeChecks(Checks):
    """Determinism of compilation, and artifacts as data."""

    def test_code_is_the_same_each_time(self, target: str) -> None:
        """The same module gives the same artifact, except for its metadata, which may hold times."""
        # A few are enough to find state that a compilation leaves behind: the next check compiles all of
        # them again, after other ones.
        for program in self.all_covered()[::8]:
            first, second = self.artifact(program, target), self.compile_again(program, target)
            different = [
                part for part in COMPARED_PARTS if getattr(first, part) != getattr(second, part)
            ]
            require(
                not different,
                f"Compiled twice, these parts of {program.name} differ: {', '.join(different)}.",
            )

    def test_another_process_makes_the_same_code(self, target: str) -> None:
        """Another hash seed and another order of the programs give the same code: it does not depend on the
        iteration order of sets, nor on what was compiled before."""
        programs = self.all_covered()
        names = [program.name for program in reversed(programs)]
        answers = in_another_process(self.backend, target, task="fingerprint", names=names)
        for program in programs:
            answer = answers[program.name]
            require(
                answer == fingerprint(self.artifact(program, target)),
                f"Another process makes something else of {program.name}: {answer}.",
            )

    def test_an_artifact_says_what_it_is(self, covered: str, target: str) -> None:
        """The artifact has the backend, version, target, signature, and the buffers with bounds checks."""
        program = selected_program(covered)
        artifact, module = self.artifact(program, target), program.module
        require(isinstance(artifact, Artifact), f"It made {artifact!r}; expected an Artifact.")
        made_by = (artifact.backend, artifact.backend_version)
        require(made_by == (self.backend.name, self.backend.version), f"It says {made_by} made it.")
        is_its_own = Target.parse(artifact.target).backend == self.backend.name
        require(is_its_own, f"It says that it is for {artifact.target}.")
        # The memory of arrays and of scratch is the choice of the backend.
        spaces = {param.space for param in artifact.signature.buffers} or {"host"}
        require(len(spaces) == 1, f"Its arrays are in several memory spaces: {', '.join(spaces)}.")
        expected = signature_of(module, space=spaces.pop(), scratch=artifact.signature.scratch)
        require(artifact.signature == expected, "Its signature is not the module's.")
        checked = {check.buffer for check in collect(CHECKING_STMTS, module)}
        missing = checked - set(artifact.bounds_checked_buffers)
        require(
            not missing,
            f"It does not list the buffers with bounds checks {', '.join(sorted(missing))}.",
        )

    def test_an_artifact_survives_serialization(self, covered: str, target: str) -> None:
        """Encoding and decoding gives an equal artifact, which can be loaded."""
        program = selected_program(covered)
        artifact = self.artifact(program, target)
        again = Artifact.decode(artifact.encode())
        require(again == artifact, "Encoded and decoded it is another artifact.")
        # Only to skip the test if the target does not work here; what is loaded is the decoded artifact.
        self.kernel(program, target)
        loaded = self.backend.load(again)
        require(loaded.artifact == artifact, "The kernel was loaded from another artifact.")
