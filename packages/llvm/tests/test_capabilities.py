"""The capabilities of backends that use the emitter."""

import subprocess
import sys

from gossamer_ir.core.dtypes import NUMBERS
from gossamer_llvm import EMITTED_CAPABILITIES


def test_capabilities_are_known_without_the_emitter_and_llvm():
    """Each command looks for backends, and most of them compile nothing."""
    code = "import sys; from gossamer_llvm import EMITTED_CAPABILITIES; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = done.stdout.split()
    assert [name for name in imported if name.startswith("gossamer_llvm.")] == [
        "gossamer_llvm.capabilities"
    ]
    assert "llvmlite" not in imported


def test_numbers_of_all_dtypes_are_computed():
    assert {f"dtype.{name}" for name in NUMBERS} <= EMITTED_CAPABILITIES
    assert {"atomic", "parallel", "vectors.fixed"} <= EMITTED_CAPABILITIES
    assert "vectors.scalable" not in EMITTED_CAPABILITIES
