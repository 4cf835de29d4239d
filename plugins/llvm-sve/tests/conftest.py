"""Flat modules from scripts, their kernels, which tests skip where they do not run."""

import pytest

from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module
from gossamer_llvm_sve.backend import ScalableBackend
from gossamer_llvm_sve.vector_extension import EXTENSIONS

BACKENDS = {name: ScalableBackend(extension) for name, extension in EXTENSIONS.items()}


@pytest.fixture
def flat():
    """A flat module whose arrays X and Y have n elements of a dtype."""

    def parse(*lines, dtype="float32", parameters=""):
        return parse_module(
            "\n".join((
                "@T.prim_func",
                f"def f(x: T.handle, y: T.handle, n: T.int64{parameters}) -> None:",
                '    T.stage("flat")',
                f'    X = T.match_buffer(x, (n,), "{dtype}")',
                f'    Y = T.match_buffer(y, (n,), "{dtype}")',
                *(f"    {line}" for line in lines),
            ))
        )  # fmt: skip

    return parse


@pytest.fixture
def load():
    """Compiles and loads a module; skips the test where its kernels do not run."""

    def kernel(module, text):
        target = Target.parse(text)
        backend = BACKENDS[target.backend]
        probe = backend.probe(target)
        if not probe.is_usable:
            pytest.skip(probe.reason)
        return backend.load(backend.compile(module, target))

    return kernel
