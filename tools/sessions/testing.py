"""Runs of tests in sessions: in parallel, with serialized borders, or in an emulated Python."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import nox

from tools import ROOT
from tools.sessions.bytecode import share_bytecode
from tools.sessions.distributions import SMALL_DISTRIBUTIONS, parse_requirements, third_party
from tools.sessions.wheels import group_requirements, install, wheel_of

UNSERIALIZED = ("-m", "unserialized")
"""Options of pytest that select the tests that add nothing to the test of borders between packages."""
SERIALIZED = ("-m", "not unserialized")
"""Options of pytest that select the other tests."""
WIRED = ("-p", "tests.pytest_plugins.wire")
"""Options of pytest that serialize everything that packages exchange."""
PARALLEL = ("-n", "auto", "--maxprocesses", "8", "--dist", "worksteal")
"""Options of pytest-xdist: most tests compile in one thread."""
NATIVE_TESTS = (
    "packages/host-runtime/tests/detection",
    "packages/host-runtime/tests/loading/test_elf.py",
    "packages/host-runtime/tests/loading/test_object_file.py::test_no_mutant_of_an_object_crashes_the_process[library]",
    "packages/host-runtime/tests/parallel/test_pool.py::test_each_region_is_complete_when_it_ends",
    "packages/host-runtime/tests/parallel/test_pool.py::test_numbers_of_threads_that_change",
    "packages/host-runtime/tests/test_native_kernel.py",
    "plugins/llvm-sve/tests/test_native.py",
    "plugins/llvm-sve/tests/test_conformance.py::TestLlvmSve::test_the_number_of_threads_changes_nothing",
    "plugins/generic-cpu/tests/test_conformance.py::TestGenericCpu::test_the_number_of_threads_changes_nothing",
    "tests/integration/test_native_operators.py",
)
"""The tests that the sessions `aarch64` and `riscv64` run."""
SHARED_TESTS = {
    "integration": ("tests/fuzzing", "tests/integration"),
    "repository": tuple(
        f"tests/{name}"
        for name in sorted({path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")})
        if name not in ("fuzzing", "integration")
    ),
}
"""The folders of `tests` by the sessions that run them: two, so that they end at the same time as others."""
NEEDING_TORCH = (
    "packages/formats/tests/tensors/test_torch_conversion.py",
    "packages/gossamer/tests/processes/test_other_thread_pools.py",
    "plugins/cuda-mma-sp/tests/cutlass/test_cutlass.py",
)
"""Tests of other distributions that skip what needs torch. The session of `torch`, the only one that installs
it, runs them, too."""
UNPACKING_PROGRAMS = ("apt-get", "dpkg-deb", "tar")


def environment_for_tests(cache: str) -> dict[str, str]:
    """Return the environment variables of tests: the folder of their cache of kernels, which only one session
    has, and one thread for matrix products of NumPy.

    After each product of matrices of 100 by 100 elements, the other threads of OpenBLAS spin for 30
    milliseconds, on CPUs that other sessions need, and a process that imports NumPy starts them.
    """
    return {"GOSSAMER_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}


def install_everything(session: nox.Session) -> dict[str, str]:
    """Install the small distributions with what tests need. Return `environment_for_tests`."""
    install(session, SMALL_DISTRIBUTIONS, *group_requirements("test"))
    return environment_for_tests(session.create_tmp())


def run_tests(
    session: nox.Session,
    paths: Sequence[str],
    options: Sequence[str],
    *,
    env: dict[str, str],
    is_wired: bool = True,
) -> None:
    """Run the tests of some folders with some options. A wired session first runs those with the mark
    `unserialized`, as they are, and only the others with the options."""
    pytest = ("python", "-m", "pytest", "-q", *PARALLEL)
    if session.posargs:
        session.run(*pytest, *paths, *session.posargs, env=env)
        return
    if is_wired:
        session.run(*pytest, *paths, *UNSERIALIZED, env=env)
    wired = (*WIRED, *SERIALIZED) if is_wired else ()
    session.run(*pytest, *paths, *wired, *options, env=env)
    share_bytecode(session)


def test_in_emulator(session: nox.Session, architecture: str) -> None:
    """Run tests in a Python of an architecture."""
    programs = (*UNPACKING_PROGRAMS, f"qemu-{architecture}-static")
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        session.skip(f"{', '.join(missing)} not installed (Debian's packages are unpacked and run)")
    session.install("uv" if session.venv_backend == "uv" else "pip")
    root = (Path(session.create_tmp()) / "root").resolve()
    needed = third_party(SMALL_DISTRIBUTIONS, *parse_requirements(group_requirements("emulated")))
    wheels = [str(wheel_of(session, distribution)) for distribution in SMALL_DISTRIBUTIONS]
    listed = sorted({str(requirement) for requirement in needed})
    made = ("python", "-m", "tools.emulated_python", architecture, str(root), *listed, *wheels)
    session.run(*made, success_codes=[0, 3])
    python, chosen = root / "usr/bin/python", session.posargs or NATIVE_TESTS
    if not python.exists():
        session.skip(f"apt-get has no source with Debian's packages for {architecture}")
    env = environment_for_tests(str(root / "cache"))
    options = ("-q", "-p", "no:cacheprovider")
    session.run(str(python), "-m", "pytest", *options, *chosen, env=env, external=True)
