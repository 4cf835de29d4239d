"""Checks of a backend's name, version, capabilities, targets and probes."""

from __future__ import annotations

from gossamer_backend import API_VERSION, Backend, Probe, is_capability
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_machine import Machine
from gossamer_testkit.conformance.base import Checks, require


class MetadataChecks(Checks):
    """The name, versions, capabilities, targets and probes of a backend."""

    def test_it_is_a_backend_of_this_version_of_the_protocol(self) -> None:
        """It has all members of `Backend`, for this version of the protocol."""
        backend = self.backend
        require(isinstance(backend, Backend), f"{backend!r} lacks members of Backend.")
        require(
            backend.api_version == API_VERSION,
            f"It is written for version {backend.api_version} of the protocol, not {API_VERSION}.",
        )

    def test_its_name_can_stand_in_a_target(self) -> None:
        """The name can be parsed as a target without options: targets begin with it."""
        try:
            parsed = Target.parse(self.backend.name)
        except ArgumentError as error:
            raise AssertionError(f"The name cannot stand in a target: {error}") from error
        require(parsed == Target(self.backend.name), f"'{self.backend.name}' has options in it.")

    def test_its_version_is_text_that_stays(self) -> None:
        """The version is a string that does not change: it is part of cache keys."""
        version = self.backend.version
        require(isinstance(version, str) and version, f"The version is {version!r}, not text.")
        require(version == self.backend.version, "The version is another one each time.")

    def test_its_capabilities_are_words_that_exist(self) -> None:
        """All capabilities exist: a misspelled one would have no effect."""
        words = self.backend.capabilities
        require(isinstance(words, frozenset), "The capabilities are not a frozenset.")
        unknown = sorted(word for word in words if not is_capability(word))
        require(not unknown, f"No capabilities are called {', '.join(unknown)}.")

    def test_it_offers_targets_of_its_own(self) -> None:
        """There is at least one target, and all of them are of this backend."""
        offered = self.backend.targets()
        require(
            isinstance(offered, tuple) and offered,
            "It does not offer a non-empty tuple of targets.",
        )
        for text in offered:
            target = Target.parse(text)
            require(
                target.backend == self.backend.name, f"The target {text} is of another backend."
            )

    def test_it_says_whether_a_target_works_here(self, target: str) -> None:
        """A probe is repeatable, has a reason if the target is not usable, and resolving is idempotent."""
        parsed = Target.parse(target)
        probe = self.backend.probe(parsed)
        require(isinstance(probe, Probe), f"It answers {probe!r}; expected a Probe.")
        require(probe == self.backend.probe(parsed), "It answers something else each time.")
        require(probe.is_usable or probe.reason, f"It does not say why {target} does not work.")
        # Caches have the resolved target in their keys: it must not resolve to another one.
        if probe.resolved:
            resolved = Target.parse(probe.resolved)
            require(resolved.backend == self.backend.name, f"{probe.resolved} is not its own.")
            again = self.backend.probe(resolved)
            require(
                (again.is_usable, again.resolved or probe.resolved)
                == (probe.is_usable, probe.resolved),
                f"{target} is resolved to {probe.resolved}, and that to {again.resolved or again}.",
            )

    def test_it_describes_the_machine_of_a_target(self, target: str) -> None:
        """The machine of a resolved target is a repeatable record, with scalable vectors only if declared."""
        resolved = Target.parse(self.backend.probe(Target.parse(target)).resolved or target)
        machine = self.backend.machine(resolved)
        require(isinstance(machine, Machine), f"The machine is {machine!r}; expected a Machine.")
        require(machine == self.backend.machine(resolved), "The machine is another one each time.")
        require(
            not machine.is_scalable or "vectors.scalable" in self.backend.capabilities,
            "The machine has scalable vectors without the capability vectors.scalable.",
        )
