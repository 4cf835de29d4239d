"""Checks that a backend refuses undeclared capabilities, invalid modules and foreign targets."""

from __future__ import annotations

from gossamer_ir.errors import GossamerError, PluginError
from gossamer_ir.interchange.records import Target
from gossamer_testkit.conformance.bad_modules import BAD_MODULES
from gossamer_testkit.conformance.base import Checks, fail, require, selected_program, skip
from gossamer_testkit.conformance.isolation import in_another_process


class RefusalChecks(Checks):
    """Undeclared capabilities, invalid modules, targets of other backends.

    A backend passes if `compile` first calls `require_compilable` of
    `gossamer_backend.registry.requirements`.
    """

    def test_what_it_does_not_declare_is_refused_by_name(self, undeclared: str) -> None:
        """A `PluginError` names every missing capability."""
        program = selected_program(undeclared)
        missing = program.lacks(self.backend.capabilities)
        target = self.target_texts()[0]
        try:
            self.compile_again(program, target)
        except PluginError as error:
            silent = [word for word in missing if word not in str(error)]
            require(not silent, f"The refusal does not name {', '.join(silent)}: {error}")
            return
        fail(f"It compiles what needs {', '.join(missing)}, which it does not declare.")

    def test_wrong_modules_are_refused(self) -> None:
        """A gossamer error is raised. Runs in another process, because some modules might crash it."""
        target = self.target_texts()[0]
        names = list(BAD_MODULES)
        answers = in_another_process(self.backend, target, task="refusal", names=names)
        wrong = [f"{name}: {answer}" for name, answer in answers.items() if answer != "refused"]
        require(not wrong, f"These are not refused: {'; '.join(wrong)}.")

    def test_a_target_of_another_backend_is_refused(self) -> None:
        """A gossamer error is raised. The registry never passes such targets, but other callers may."""
        covered = self.all_covered()
        if not covered:
            skip(f"{self.backend.name} covers no program")
        try:
            self.backend.compile(covered[0].module, Target("no-backend-has-this-name"))
        except GossamerError:
            return
        fail("It compiles for a target of another backend.")
