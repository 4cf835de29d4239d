"""The CPU that a target describes, its features and the length of its vectors."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from gossamer_emulation import EmulatedMachine
from gossamer_host_runtime import host, parallelism_of, scalable_vector_bits
from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_llvm_sve.sme_intrinsics import SME_BLOCK_PRODUCTS
from gossamer_llvm_sve.vector_extension import EXTENSIONS, CpuModel, VectorExtension
from gossamer_machine import Machine, machine_of
from gossamer_machine.cpu_options import CPU_OPTIONS, option_value_error, require_options

_CACHE_OPTIONS = {
    option.name: option for option in CPU_OPTIONS if option.name in ("l2", "l3", "cores")
}
"""Options of the caches and cores that rules for schedules read."""

_THREADS, _STREAMING, _MIN_STREAMING = "threads", "streaming_bits", "min_streaming_bits"
_EXPECTED_STREAMING_BITS = 256
"""The length of vectors in streaming mode from which outer products pay for all dtypes. The architecture
allows 128 bits; a target says so if a CPU has them."""
_ERRORS = "scalable_cpu"
"""The first part of the codes of errors."""


class ScalableCpu(NamedTuple):
    """A CPU with a vector extension and its `features`, in the order of those of the extension.

    Code relies on vectors of `min_vector_bits`, and the emulator has `vector_bits`. In the streaming mode
    of SME, rules for schedules expect `min_streaming_bits`, and the emulator has `streaming_bits`.

    >>> cpu = cpu_of(Target.parse("llvm-sve:cpu=neoverse-v1"))
    >>> cpu.model.name, cpu.features, cpu.min_vector_bits, cpu.vector_bits
    ('neoverse-v1', ('sve',), 128, 256)
    """

    extension: VectorExtension
    model: CpuModel
    features: tuple[str, ...]
    min_vector_bits: int
    vector_bits: int
    streaming_bits: int
    min_streaming_bits: int

    @property
    def has_sme(self) -> bool:
        """True if it has the matrix registers and the streaming mode of SME."""
        return "sme" in self.features

    @property
    def llvm_features(self) -> str:
        """The features as LLVM takes them.

        >>> cpu_of(Target.parse("llvm-rvv:min_vector_bits=256")).llvm_features
        '+m,+a,+f,+d,+c,+v,+zvl256b'
        """
        length = self.extension.length_feature
        stated = () if length is None else (length.format(bits=self.min_vector_bits),)
        names = (*self.extension.base_features, *self.features, *stated)
        return ",".join(f"+{name}" for name in names)

    @property
    def required_features(self) -> frozenset[str]:
        """The features that a machine must have to run the code.

        >>> sorted(cpu_of(Target.parse("llvm-sve:cpu=a64fx")).required_features)
        ['complxnum', 'crc', 'fullfp16', 'lse', 'rdm', 'sve']
        """
        return self.model.others | {*self.features, *self.model.rarely_emulated}

    @property
    def converts_half(self) -> bool:
        """True if it has instructions that convert float16."""
        needed = self.extension.half_feature
        return needed is None or needed in self.features

    @property
    def emulated_machine(self) -> EmulatedMachine:
        """The machine that runs its kernels.

        >>> cpu_of(Target.parse("llvm-sve:vector_bits=512")).emulated_machine.cpu
        'max,sve-max-vq=4,sve-default-vector-length=64,sme-default-vector-length=64'
        """
        bits = self.vector_bits
        sizes = {
            "bits": bits,
            "bytes": bits // 8,
            "units": bits // VSCALE_UNIT_BITS,
            "streaming_bytes": self.streaming_bits // 8,
        }
        added = "".join(f",{name}=true" for name in self.model.rarely_emulated)
        cpu = self.extension.emulated_cpu.format_map(sizes)
        return EmulatedMachine(self.extension.architecture, f"{cpu}{added}")


def cpu_of(target: Target) -> ScalableCpu:
    """Return the CPU of a target; raise `ArgumentError` (`scalable_cpu.option`, `scalable_cpu.option_value`,
    `scalable_cpu.vector_bits`, `scalable_cpu.streaming_bits`, `threads.count`) if an option or its value is
    unknown."""
    extension = EXTENSIONS[target.backend]
    _require_options(target, extension)
    model = _cpu_model(target, extension)
    min_vector_bits = _bits(target, "min_vector_bits", extension, default=model.min_vector_bits)
    if min_vector_bits < model.min_vector_bits:
        expected = f"at least {model.min_vector_bits}, on which code for {model.name} relies"
        raise _value_error(target, "min_vector_bits", expected)
    default = max(model.vector_bits, min_vector_bits)
    vector_bits = _bits(target, "vector_bits", extension, default=default)
    if vector_bits < min_vector_bits:
        raise ArgumentError(
            "scalable_cpu.vector_bits",
            f"The vectors of '{target.text}' have {vector_bits} bits, "
            f"and the code may rely on {min_vector_bits}.",
            hint="Give min_vector_bits= at most the value of vector_bits=.",
        )
    features = _features(target, extension, cpu_features=model.features)
    streaming_bits = _bits(target, _STREAMING, extension, default=vector_bits)
    is_stated = bool(target.option(_STREAMING))
    expected_bits = streaming_bits if is_stated else _EXPECTED_STREAMING_BITS
    min_streaming_bits = _bits(target, _MIN_STREAMING, extension, default=expected_bits)
    if (is_stated or target.option(_MIN_STREAMING)) and "sme" not in features:
        raise ArgumentError(
            "scalable_cpu.streaming_bits",
            f"The CPU of '{target.text}' has no streaming mode.",
            hint="Add sme to features=.",
        )
    return ScalableCpu(
        extension,
        model,
        features,
        min_vector_bits,
        vector_bits,
        streaming_bits,
        min_streaming_bits,
    )


def _require_options(target: Target, extension: VectorExtension) -> None:
    streaming = [_STREAMING, _MIN_STREAMING] if "sme" in extension.features else []
    allowed = [
        "cpu",
        "features",
        "min_vector_bits",
        "vector_bits",
        *streaming,
        *_CACHE_OPTIONS,
        _THREADS,
    ]
    require_options(target, names=allowed, model=_CACHE_OPTIONS, errors=_ERRORS)
    # The function of a kernel's threads is made when it is loaded, but a wrong number is refused before.
    parallelism_of(target)


def machine_of_cpu(target: Target) -> Machine:
    """Return the machine of a target: its vectors are scalable, from the least length that code may rely on.

    >>> machine = machine_of_cpu(Target.parse("llvm-sve:min_vector_bits=256,vector_bits=512"))
    >>> machine.is_scalable, machine.min_vector_bits, machine.vector_registers
    (True, 256, 32)
    """
    described, cpu = machine_of(target), cpu_of(target)
    return replace(
        described,
        min_vector_bits=cpu.min_vector_bits,
        is_scalable=True,
        fixed_vscale=None,
        block_products=SME_BLOCK_PRODUCTS if cpu.has_sme else (),
        min_product_bits=cpu.min_streaming_bits,
    )


def explicit_target(target: Target) -> str:
    """Return the target with all options of the CPU, and the caches and cores of a machine on which this
    process runs its kernels.

    >>> explicit_target(Target.parse("llvm-sve:min_vector_bits=256,l2=1048576"))
    'llvm-sve:cpu=generic,features=sve,min_vector_bits=256,vector_bits=256,l2=1048576'
    """
    cpu = cpu_of(target)
    options = {
        "cpu": cpu.model.name,
        "features": "+".join(cpu.features),
        "min_vector_bits": str(cpu.min_vector_bits),
        "vector_bits": str(cpu.vector_bits),
    }
    if cpu.has_sme:
        options[_STREAMING] = str(cpu.streaming_bits)
        options[_MIN_STREAMING] = str(cpu.min_streaming_bits)
    stated = {key: value for key, value in target.options if key in (*_CACHE_OPTIONS, _THREADS)}
    host_options = _host_options() if cpu.extension.is_native else {}
    return Target(target.backend, tuple({**options, **host_options, **stated}.items())).text


def _host_options() -> dict[str, str]:
    if scalable_vector_bits() is None:
        return {}
    return {key: value for key, value in host().options.items() if key in _CACHE_OPTIONS}


def _cpu_model(target: Target, extension: VectorExtension) -> CpuModel:
    models = {model.name: model for model in extension.cpus}
    name = target.option("cpu", extension.cpus[0].name)
    if name not in models:
        raise _value_error(target, "cpu", f"one of {', '.join(models)}")
    return models[name]


def _bits(target: Target, key: str, extension: VectorExtension, *, default: int) -> int:
    text = target.option(key, str(default))
    lengths = {str(bits): bits for bits in extension.vector_lengths}
    if text not in lengths:
        raise _value_error(target, key, f"one of {', '.join(lengths)}")
    return lengths[text]


def _features(
    target: Target, extension: VectorExtension, *, cpu_features: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the features of the CPU and those that the target adds."""
    text, all_names = target.option("features"), extension.features
    added = text.split("+") if text else []
    if not set(added) <= set(all_names):
        raise _value_error(target, "features", f"some of {', '.join(all_names)}, joined by '+'")
    return tuple(name for name in all_names if name in cpu_features or name in added)


def _value_error(target: Target, name: str, expected: str) -> ArgumentError:
    return option_value_error(target, name, expected=expected, errors=_ERRORS)
