"""Artifacts of kernels that multiply elements, and the machines that they run on."""

from gossamer_backend.plugin_api import Artifact
from gossamer_emulation import AARCH64, RISCV64, EmulatedMachine
from gossamer_ir.core.build import index_var
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature

MACHINES = {
    "aarch64": EmulatedMachine(AARCH64, "max"),
    "riscv64": EmulatedMachine(RISCV64, "rv64"),
}


def artifact_of(code, *, scalars=(), dtype="float32"):
    """An artifact of a kernel with the arrays `x`, which is read, and `y`, which is written, both with n
    elements, and more scalars."""
    arrays = tuple(
        BufferParam(
            name, name.upper(), dtype, (index_var("n"),), is_read=True, is_written=name == "y"
        )
        for name in ("x", "y")
    )
    params = (ScalarParam("n", "int64"), *scalars)
    order = ("x", "y", *(param.name for param in params))
    return Artifact("toy", "1.0", "toy", Signature("f", arrays, params, order), code, ("X", "Y"))
