"""Load an artifact with object code for this machine as a kernel that runs on the threads of this process."""

from __future__ import annotations

from gossamer_backend.plugin_api import KERNEL_SYMBOL, Artifact, NativeKernel
from gossamer_host_runtime.loading.loader import load_object
from gossamer_host_runtime.parallel.threads import parallelism_of, signal_exception
from gossamer_support.typed_calls import typed


@typed
def load_kernel(artifact: Artifact) -> NativeKernel:
    """Link the object code of an artifact into this process; its kernel runs on the threads that the option
    `threads=` of the target or `set_num_threads` chooses.

    The caller has checked that this machine has all instructions that the code may use: one that it lacks
    ends the process. `ArgumentError` (`host_runtime.object`) if the bytes are not object code for this
    machine.

    >>> from gossamer_host_runtime import host_cpu, target_machine
    >>> from gossamer_ir.interchange.records import ScalarParam, Signature
    >>> from gossamer_llvm.optimization import parse
    >>> module = parse("define i64 @gossamer_kernel(i64 %n, ptr %workspace) { ret i64 0 }")
    >>> code = bytes(target_machine(host_cpu()).emit_object(module))
    >>> signature = Signature("nothing", (), (ScalarParam("n", "int64"),), ("n",))
    >>> load_kernel(Artifact("toy", "1.0", "toy:threads=2", signature, code))(5)
    """
    address, library = load_object(artifact.code, KERNEL_SYMBOL)
    return NativeKernel(
        artifact,
        address,
        parallelism=parallelism_of(artifact.parsed_target()),
        interruption=signal_exception,
        keep_alive=(library,),
    )
