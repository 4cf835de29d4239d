"""A pytest plugin that encodes and decodes every value that crosses a package border.

    python -m pytest -p tests.pytest_plugins.wire packages/gossamer/tests      (as `nox -s tests wire` do)

Values are encoded and decoded when they cross a border, in both directions, so that no package can rely on
the identity of an object or on anything that the wire format does not store. The round trips are counted for
each border; a border that no test crosses fails the run (unless `--some-borders` is given).
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

import msgspec
import pytest

from gossamer_backend.artifact import Artifact
from gossamer_ir.interchange.records import Record, Schedule, Step
from gossamer_ir.interchange.serialization import dumps, dumps_record, loads, loads_record
from gossamer_ir.nodes import FormatDescription, Module, Node
from gossamer_machine import Machine
from gossamer_support.identity_cache import memoize_by_identity


@dataclass(frozen=True)
class Border:
    """The calling and the called package, the module from which callers import the object, and its name
    there."""

    caller: str
    callee: str
    home: str
    name: str

    @functools.cached_property
    def package(self) -> str:
        """The import package of the caller."""
        return (
            "gossamer" if self.caller == "gossamer" else f"gossamer_{self.caller.replace('-', '_')}"
        )

    @functools.cached_property
    def callee_package(self) -> str:
        """The import package of the callee."""
        return package_of(self.home)

    def __str__(self) -> str:
        return f"{self.caller} -> {self.callee}: {self.name}"


@functools.cache
def package_of(module_name: str) -> str:
    """Return the import package of a module."""
    return module_name.partition(".")[0]


TABLE = (
    Border("gossamer", "formats", "gossamer_formats", "SparseTensor.description"),
    Border("gossamer", "formats", "gossamer_formats", "SparseTensor.stats"),
    Border("gossamer", "formats", "gossamer_formats", "SparseTensor.asformat"),
    Border("gossamer", "formats", "gossamer_formats", "convert"),
    Border("gossamer", "formats", "gossamer_formats", "decompose"),
    Border("gossamer", "formats", "gossamer_formats", "Decomposition.rewrite"),
    Border("gossamer", "formats", "gossamer_formats", "csr"),
    Border("gossamer", "formats", "gossamer_formats.descriptions.tiled_csr", "tiled_csr"),
    Border("gossamer", "formats", "gossamer_formats", "from_arrays"),
    Border("gossamer", "formats", "gossamer_formats.internal_api", "is_format"),
    Border("gossamer", "formats", "gossamer_formats", "storage_stats"),
    Border("gossamer", "formats", "gossamer_formats.internal_api", "shape_of"),
    Border("gossamer", "tune", "gossamer_tune.internal_api", "choose_cpu_form"),
    Border("gossamer", "tune", "gossamer_tune.internal_api", "choose_grid_form"),
    Border("gossamer", "schedule", "gossamer_schedule", "replay"),
    Border("gossamer", "schedule", "gossamer_schedule", "ScheduleBuilder.__init__"),
    Border("gossamer", "schedule", "gossamer_schedule", "ScheduleBuilder.module"),
    Border("gossamer", "schedule", "gossamer_schedule", "ScheduleBuilder.program"),
    Border("gossamer", "schedule", "gossamer_schedule", "ScheduleBuilder.replay"),
    Border("gossamer", "schedule", "gossamer_schedule", "ScheduleBuilder.schedule"),
    Border("gossamer", "schedule", "gossamer_schedule", "ScheduleBuilder.trace"),
    Border("gossamer", "schedule", "gossamer_schedule.internal_api", "parallel_outer_loops"),
    Border("gossamer", "schedule", "gossamer_schedule.internal_api", "schedule_report"),
    Border("gossamer", "schedule", "gossamer_schedule.internal_api", "default_space"),
    Border("gossamer", "schedule", "gossamer_schedule.internal_api", "trace_from_json"),
    Border("gossamer", "schedule", "gossamer_schedule.internal_api", "unroll_counting_loops"),
    Border("gossamer", "lower", "gossamer_lower", "lower_iterations"),
    Border("gossamer", "lower", "gossamer_lower", "lower_buffers"),
    Border("gossamer", "lower", "gossamer_lower", "lower_to_flat"),
    Border("gossamer", "lower", "gossamer_lower.internal_api", "ExtensionPoint.require_constructs"),
    Border("gossamer", "lower", "gossamer_lower.internal_api", "lower_with_extensions"),
    Border("gossamer", "lower", "gossamer_lower", "bounds_check_flat"),
    Border("gossamer", "lower", "gossamer_lower.internal_api", "apply_pass"),
    Border("gossamer", "lower", "gossamer_lower.internal_api", "apply_record"),
    Border("gossamer", "lower", "gossamer_lower.internal_api", "PassRecord.require_postconditions"),
    Border("gossamer", "lower", "gossamer_lower.internal_api", "bounds_checks_of"),
    Border("gossamer", "backend", "gossamer_backend", "program_key"),
    Border("gossamer", "backend", "gossamer_backend", "request_key"),
    Border("gossamer", "backend", "gossamer_backend", "object_key"),
    Border("gossamer", "backend", "gossamer_backend", "ArtifactCache.get"),
    Border("gossamer", "backend", "gossamer_backend", "ArtifactCache.put"),
    Border("gossamer", "backend", "gossamer_backend", "NativeKernel.signature"),
    Border(
        "gossamer", "backend", "gossamer_backend.internal_api", "ValidatingBackend.instructions"
    ),
    Border("gossamer", "backend", "gossamer_backend.internal_api", "ValidatingBackend.probe"),
    Border("gossamer", "backend", "gossamer_backend.internal_api", "ValidatingBackend.machine"),
    Border("gossamer", "backend", "gossamer_backend.internal_api", "ValidatingBackend.compile"),
    Border("gossamer", "backend", "gossamer_backend.internal_api", "ValidatingBackend.texts"),
    Border("gossamer", "backend", "gossamer_backend.internal_api", "ValidatingBackend.load"),
    Border(
        "gossamer", "backend", "gossamer_backend.internal_api", "ValidatingBackend.export_parts"
    ),
    Border("gossamer", "backend", "gossamer_backend.internal_api", "export_artifact"),
    Border(
        "gossamer",
        "backend",
        "gossamer_backend.compiled_checks.check_program",
        "program_of_checks",
    ),
    Border("formats", "a check", "gossamer_backend", "GeneratedCheck.__call__"),
    Border("backend", "a plugin", "gossamer_backend.registry.extension", "Extension.apply_pass"),
    Border("backend", "a plugin", "gossamer_backend.registry.extension", "Extension.schedule"),
    Border("gossamer", "backend", "gossamer_backend.internal_api", "Plugin.intrinsics"),
    Border("backend", "a plugin", "gossamer_backend.registry.plugin", "Plugin.schedule"),
    Border("backend", "a plugin", "gossamer_backend.registry.plugin", "Plugin.run_passes"),
    Border("backend", "generic-cpu", "gossamer_generic_cpu.backend", "GenericCpu.instructions"),
    Border("backend", "generic-cpu", "gossamer_generic_cpu.backend", "GenericCpu.probe"),
    Border("backend", "generic-cpu", "gossamer_generic_cpu.backend", "GenericCpu.machine"),
    Border("backend", "generic-cpu", "gossamer_generic_cpu.backend", "GenericCpu.compile"),
    Border("backend", "generic-cpu", "gossamer_generic_cpu.backend", "GenericCpu.texts"),
    Border("backend", "generic-cpu", "gossamer_generic_cpu.backend", "GenericCpu.load"),
    Border("host-runtime", "backend", "gossamer_backend", "NativeKernel.__init__"),
    Border("generic-cpu", "host-runtime", "gossamer_host_runtime", "load_kernel"),
    Border("generic-cpu", "host-runtime", "gossamer_host_runtime", "parallelism_of"),
    Border("generic-cpu", "emulation", "gossamer_emulation", "emulated_kernel"),
    Border(
        "generic-cpu", "backend", "gossamer_backend.registry.requirements", "require_compilable"
    ),
    Border("generic-cpu", "llvm", "gossamer_llvm", "emit_llvm_ir"),
    Border("generic-cpu", "llvm", "gossamer_llvm", "bounds_checked_buffers"),
    Border("backend", "llvm-sve", "gossamer_llvm_sve.backend", "ScalableBackend.probe"),
    Border("backend", "llvm-sve", "gossamer_llvm_sve.backend", "ScalableBackend.machine"),
    Border("backend", "llvm-sve", "gossamer_llvm_sve.backend", "ScalableBackend.compile"),
    Border("backend", "llvm-sve", "gossamer_llvm_sve.backend", "ScalableBackend.texts"),
    Border("backend", "llvm-sve", "gossamer_llvm_sve.backend", "ScalableBackend.load"),
    Border("llvm-sve", "emulation", "gossamer_emulation", "emulated_kernel"),
    Border("backend", "cuda-mma-sp", "gossamer_cuda_mma_sp.backend", "CudaBackend.probe"),
    Border("backend", "cuda-mma-sp", "gossamer_cuda_mma_sp.backend", "CudaBackend.machine"),
    Border("backend", "cuda-mma-sp", "gossamer_cuda_mma_sp.backend", "CudaBackend.compile"),
    Border("backend", "cuda-mma-sp", "gossamer_cuda_mma_sp.backend", "CudaBackend.texts"),
    Border("backend", "cuda-mma-sp", "gossamer_cuda_mma_sp.backend", "CudaBackend.load"),
    Border("backend", "cuda-mma-sp", "gossamer_cuda_mma_sp.backend", "CudaBackend.export_parts"),
    Border("cuda-mma-sp", "backend", "gossamer_backend.plugin_api", "ArgumentChecker.__init__"),
    Border(
        "cuda-mma-sp", "backend", "gossamer_backend.registry.requirements", "require_compilable"
    ),
    Border("cuda-mma-sp", "lower", "gossamer_lower", "lower_to_device"),
    Border("cuda-mma-sp", "lower", "gossamer_lower", "pipeline_loops"),
    Border("cuda-mma-sp", "llvm", "gossamer_llvm", "emit_llvm_ir"),
    Border("cuda-mma-sp", "llvm", "gossamer_llvm", "bounds_checked_buffers"),
    Border("emulation", "backend", "gossamer_backend.plugin_api", "python_kernel"),
    Border("emulation", "backend", "gossamer_backend", "ArtifactCache.get"),
    Border("llvm-sve", "backend", "gossamer_backend.registry.requirements", "require_compilable"),
    Border("llvm-sve", "llvm", "gossamer_llvm", "emit_llvm_ir"),
    Border("llvm-sve", "llvm", "gossamer_llvm", "bounds_checked_buffers"),
)
"""A package that several packages call has a row for each of them."""


def is_installed(border: Border) -> bool:
    """Return whether both packages of a border are installed: the front door needs only one plugin."""
    packages = (border.package, border.callee_package)
    return all(importlib.util.find_spec(package) is not None for package in packages)


BORDERS = tuple(filter(is_installed, TABLE))

CROSSED: Counter[Border] = Counter()


@memoize_by_identity
def module_through(module: Module) -> Module:
    """The module after encoding and decoding. It is compared here, so only once: a module crosses several
    borders one after the other."""
    received = loads(dumps(module))
    assert received == module, f"serialization changes {module!r}"
    return received


def through(value: Any) -> Any:
    """The value after encoding and decoding; values that are not data of gossamer are returned unchanged."""
    match value:
        case Module():
            return module_through(value)
        case Artifact():
            return Artifact.decode(value.encode())
        case Machine():
            return msgspec.json.decode(msgspec.json.encode(value), type=Machine)
        case (Step(), *_):
            return through(Schedule(loop=value)).loop
        case Record() | FormatDescription():
            return loads_record(dumps_record(value), type(value))
        case Node():
            return msgspec.json.decode(msgspec.json.encode(value), type=type(value))
        case tuple() | list() if type(value) in (tuple, list):
            items = [through(item) for item in value]
            is_data = any(new is not old for new, old in zip(items, value, strict=True))
            return type(value)(items) if is_data else value
    return value


def crossed_border(borders: Sequence[Border], caller: FrameType) -> Border | None:
    """Return the border that a call of an object crosses: the one of the calling package, or else the
    first one, for example for a test. None if the callee calls itself, as a pass calls the checks of its
    own package."""
    package = package_of(caller.f_globals.get("__name__", ""))
    border_of_package = next((border for border in borders if border.package == package), None)
    return border_of_package or (None if package == borders[0].callee_package else borders[0])


def forced(borders: Sequence[Border], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with arguments and result encoded and decoded, unless its own package calls it."""

    def sent(value: Any, border: Border) -> Any:
        received = through(value)
        if received is not value:
            # `module_through` compares modules.
            is_equal = isinstance(value, Module) or received == value
            assert is_equal, f"{border} changes {value!r}"
            CROSSED[border] += 1
        return received

    @functools.wraps(function)
    def crossing(*arguments: Any, **named: Any) -> Any:
        border = crossed_border(borders, sys._getframe(1))
        if border is None:
            return function(*arguments, **named)
        values = [sent(value, border) for value in arguments]
        by_name = {name: sent(value, border) for name, value in named.items()}
        return sent(function(*values, **by_name), border)

    return crossing


def forced_member(borders: Sequence[Border], plain: Any) -> Any:
    """As `forced`, for members of a class."""
    match plain:
        case property():
            return property(forced(borders, plain.fget))
        case functools.cached_property():
            made = functools.cached_property(forced(borders, plain.func))
            made.__set_name__(type(plain), plain.attrname)
            return made
    return forced(borders, plain)


def modules_of(package: str) -> Iterator[ModuleType]:
    """All modules of a package."""
    module = importlib.import_module(package)
    yield module
    for item in pkgutil.walk_packages(module.__path__, f"{package}."):
        if not item.name.endswith(".__main__"):
            yield importlib.import_module(item.name)


def install(borders: Sequence[Border]) -> None:
    """Replaces a plain function, which has these borders, by the wrapped one wherever other packages have
    imported it."""
    border = borders[0]
    owner, _, attribute = border.name.rpartition(".")
    home = importlib.import_module(border.home)
    if owner:
        cls = getattr(home, owner)
        setattr(cls, attribute, forced_member(borders, inspect.getattr_static(cls, attribute)))
        return
    plain = getattr(home, attribute)
    made = forced(borders, plain)
    outside = [
        module
        for name, module in list(sys.modules.items())
        if package_of(name).startswith("gossamer") and package_of(name) != border.callee_package
    ]
    for module in (home, *outside):
        if vars(module).get(attribute) is plain:
            setattr(module, attribute, made)


def borders_by_object() -> dict[tuple[str, str], list[Border]]:
    """Return the borders by the module and the name of what is called."""
    by_home: dict[tuple[str, str], list[Border]] = {}
    for border in BORDERS:
        by_home.setdefault((border.home, border.name), []).append(border)
    return by_home


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--some-borders", action="store_true", help="Not every border is crossed.")


def pytest_configure() -> None:
    packages = {border.callee_package for border in BORDERS}
    for package in sorted(packages | {"gossamer"}):
        list(modules_of(package))
    for borders in borders_by_object().values():
        install(borders)


def never_crossed() -> list[Border]:
    return [
        border for border in BORDERS if not CROSSED[border] and not needs_absent_programs(border)
    ]


def needs_absent_programs(border: Border) -> bool:
    """Return whether a border is crossed only by emulated kernels, and this machine emulates none."""
    if "emulation" not in (border.caller, border.callee):
        return False
    from gossamer_emulation import AARCH64, reason_against_emulation

    return reason_against_emulation(AARCH64) is not None


def is_lacking(config: pytest.Config) -> bool:
    """Return whether a required border was not crossed."""
    return bool(never_crossed()) and not config.getoption("--some-borders")


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["crossed"] = [CROSSED[border] for border in BORDERS]
    elif is_lacking(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Adds what a process of pytest-xdist has counted; the last hook before the session ends."""
    for border, count in zip(BORDERS, node.workeroutput["crossed"], strict=True):
        CROSSED[border] += count


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    terminalreporter.section("round trips through bytes at each border")
    for border in BORDERS:
        terminalreporter.write_line(f"{CROSSED[border]:10,}  {border}")
    for border in never_crossed() if is_lacking(config) else ():
        terminalreporter.write_line(f"No test crosses {border}.", red=True)
