"""A backend that is held to what its plugin declared."""

from __future__ import annotations

from gossamer_backend.artifact import Artifact
from gossamer_backend.call.kernel import Kernel
from gossamer_backend.registry.protocol import Backend, NativeFunctions, Probe, SourceInspection
from gossamer_backend.registry.requirements import require_compilable, require_own_target
from gossamer_ir.errors import PluginError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module


class ValidatingBackend:
    """What the registry hands out: the plugin's backend, asked only for what it declared, and whose
    answers are checked. It is a `Backend` itself."""

    def __init__(self, backend: Backend) -> None:
        self.plain = backend
        self.name = backend.name
        self.api_version = backend.api_version
        self.version = backend.version
        self.capabilities = backend.capabilities

    def targets(self) -> tuple[str, ...]:
        """Targets worth offering, the default first."""
        return self.plain.targets()

    def probe(self, target: Target) -> Probe:
        """Whether the target works on this machine."""
        require_own_target(self, target)
        return self.plain.probe(target)

    def instructions(self, target: Target) -> frozenset[str]:
        """The functions that a target has: those declared, as far as the backend says no less."""
        require_own_target(self, target)
        words = (word.partition(".") for word in self.capabilities)
        declared = frozenset(name for kind, _, name in words if kind == "call")
        if not isinstance(self.plain, NativeFunctions):
            return declared
        return declared & self.plain.instructions(target)

    def compile(self, module: Module, target: Target) -> Artifact:
        """Compiles a flat module.

        `PluginError` where the module needs a capability that was not declared, `ArgumentError`
        where it is not flat or the target is another backend's, `VerifyError` where it is wrong.
        """
        require_compilable(self, module, target)
        return self._require_artifact(self.plain.compile(module, target))

    def texts(self, module: Module, target: Target) -> dict[str, str]:
        """The text of a flat module at each further stage (`llvm`, `asm`); {} where the backend
        shows none. Errors as in `compile`."""
        require_compilable(self, module, target)
        if not isinstance(self.plain, SourceInspection):
            return {}
        return dict(self.plain.texts(module, target))

    def load(self, artifact: Artifact) -> Kernel:
        """Makes an artifact callable; `PluginError` where another backend or version made it."""
        if (artifact.backend, artifact.backend_version) != (self.name, self.version):
            raise PluginError(
                "plugin.other_artifact",
                f"The backend '{self.name}' {self.version} cannot load an artifact of "
                f"'{artifact.backend}' {artifact.backend_version}.",
            )
        return self.plain.load(artifact)

    def _require_artifact(self, artifact: Artifact) -> Artifact:
        if not isinstance(artifact, Artifact) or artifact.backend != self.name:
            raise PluginError(
                "plugin.no_artifact",
                f"The backend '{self.name}' compiled a module to something that is no artifact "
                "of its own.",
            )
        return artifact
