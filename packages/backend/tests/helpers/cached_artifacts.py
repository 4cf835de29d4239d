"""An artifact, and keys of the cache."""

from gossamer_backend import Artifact
from gossamer_ir.core.build import index_var
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature

KEY, OTHER, THIRD, FOURTH = "1" * 64, "a" * 64, "f" * 64, "d" * 64


def artifact(code=b"machine code"):
    x = BufferParam("x", "X", "float32", (index_var("n"),), is_read=True, is_written=True)
    signature = Signature("f", (x,), (ScalarParam("n", "int64"),), ("x", "n"))
    return Artifact("toy", "1.0", "toy:cpu=any", signature, code, ("X",), (("cpu", "any"),))
