"""The backend: it "compiles" a flat module to its encoded text."""

from acme_separate.kernel import SeparateKernel
from acme_separate.memory import SeparateArray, to_device
from gossamer_backend.plugin_api import API_VERSION, Artifact, Probe, require_compilable
from gossamer_ir import dumps, scratch_layout, signature_of
from gossamer_ir.nodes import Guard
from gossamer_ir.traversal.walk import walk
from gossamer_machine import Machine

HOST_ARRAYS = ("refuse", "copy")


class SeparateMemory:
    """Arrays of NumPy are refused, or with the option `host_arrays=copy` copied to the device and back."""

    name = "separate-memory"
    api_version = API_VERSION
    version = "0.1"
    # Programs that check facts about index arrays of int32 need vectors of uint32, marks of uint8, counts of
    # bits, and loops for searches.
    capabilities = frozenset(
        [
            *(f"dtype.{name}" for name in ("float32", "float64", "int32", "uint32", "uint8")),
            *("call.popcount", "guard", "parallel", "scope.local", "vectors.fixed", "while"),
        ]
    )

    def targets(self):
        return (f"{self.name}:host_arrays=copy", self.name)

    def probe(self, target):
        chosen = target.option("host_arrays", HOST_ARRAYS[0])
        if chosen not in HOST_ARRAYS:
            return Probe(
                is_usable=False, reason=f"host_arrays={chosen} is neither refuse nor copy."
            )
        return Probe(is_usable=True, resolved=f"{self.name}:host_arrays={chosen}")

    def machine(self, target):
        return Machine(vector_registers=0)

    def compile(self, module, target):
        require_compilable(self, module, target)
        signature = signature_of(module, space="global", scratch=scratch_layout(module).size)
        checked = tuple(dict.fromkeys(n.buffer for n in walk(module) if isinstance(n, Guard)))
        resolved = self.probe(target).resolved or target.text
        return Artifact(self.name, self.version, resolved, signature, dumps(module), checked)

    def new_array(self, shape, dtype, *, device):
        return SeparateArray(shape, dtype)

    def to_device(self, array, *, device):
        return to_device(array)

    def load(self, artifact):
        copies = artifact.parsed_target().option("host_arrays") == "copy"
        return SeparateKernel(artifact, copies=copies)
