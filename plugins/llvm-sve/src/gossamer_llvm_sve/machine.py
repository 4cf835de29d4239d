"""The CPU that a target describes, its features and the length of its vectors."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from gossamer_host_runtime import host, sve_vector_bits
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_machine import Machine, machine_of
from gossamer_machine.cpu_options import CPU_OPTIONS

BLOCK_PRODUCTS = tuple((dtype, f"sme_block_product_{dtype}") for dtype in ("float32", "float16"))
"""The intrinsics for SME, by the dtype of their operands."""

VECTOR_LENGTHS = (128, 256, 512, 1024, 2048)
"""The lengths of vectors in bits. The architecture no longer permits others, which were no powers of two."""

SVE_FEATURES = ("sve", "sve2", "sme")

_CPUS = {
    "generic": (128, ("sve",)),
    "a64fx": (512, ("sve",)),
    "neoverse-v1": (256, ("sve",)),
    "neoverse-v2": (128, ("sve", "sve2")),
    "neoverse-n2": (128, ("sve", "sve2")),
}
"""The bits of the vectors of each CPU, by LLVM's name, and its features."""

_A64FX = frozenset({"crc", "lse", "rdm", "fullfp16", "complxnum"})
_V1 = _A64FX | {
    "jsconv",
    "rcpc",
    "rcpc-immo",
    "dotprod",
    "fp16fml",
    "flagm",
    "lse2",
    "bf16",
    "i8mm",
}
_V2 = _V1 | {"altnzcv", "fptoint"}
_INSTRUCTION_SETS = {"a64fx": _A64FX, "neoverse-v1": _V1, "neoverse-v2": _V2, "neoverse-n2": _V2}
"""What else LLVM may use in code for a CPU, by the names of `gossamer_host_runtime`."""

_MODEL = {option.name: option for option in CPU_OPTIONS if option.name in ("l2", "l3", "cores")}
"""Options that rules for schedules read, besides `vector_bits`."""

_THREADS = "threads"
_OPTIONS = ("cpu", "features", "vl_min", "vector_bits", "streaming_bits", *_MODEL, _THREADS)


class SveCpu(NamedTuple):
    """A CPU by LLVM's name, its `features` in the order of `SVE_FEATURES`, the minimum length of its vectors
    that code may rely on, the length that it is emulated with, and that in the streaming mode of SME, all in
    bits.

    >>> cpu_of(Target.parse("llvm-sve:cpu=neoverse-v1"))
    SveCpu(name='neoverse-v1', features=('sve',), vl_min=128, vector_bits=256, streaming_bits=256)
    """

    name: str
    features: tuple[str, ...]
    vl_min: int
    vector_bits: int
    streaming_bits: int

    @property
    def has_sme(self) -> bool:
        """Whether it has the matrix registers and the streaming mode of SME."""
        return "sme" in self.features

    @property
    def llvm_features(self) -> str:
        """The features as LLVM takes them."""
        return ",".join(f"+{name}" for name in self.features)

    @property
    def required(self) -> frozenset[str]:
        """The features that a machine must have to run the code.

        >>> sorted(cpu_of(Target.parse("llvm-sve:cpu=a64fx")).required)
        ['complxnum', 'crc', 'fullfp16', 'lse', 'rdm', 'sve']
        """
        return _INSTRUCTION_SETS.get(self.name, frozenset()) | set(self.features)


def cpu_of(target: Target) -> SveCpu:
    """Return the CPU of a target; raise `ArgumentError` (`llvm_sve.option`, `llvm_sve.option_value`,
    `llvm_sve.vector_bits`, `llvm_sve.streaming_bits`) if an option or its value is unknown."""
    for key, value in target.options:
        if key not in _OPTIONS:
            raise ArgumentError(
                "llvm_sve.option",
                f"'{key}' is not an option of llvm-sve.",
                hint=f"Expected one of {', '.join(_OPTIONS)}.",
            )
        if key in _MODEL and _MODEL[key].parse(value) is None:
            raise _value_error(target, key, _MODEL[key].expected)
    cpu = target.option("cpu", "generic")
    if cpu not in _CPUS:
        raise _value_error(target, "cpu", f"one of {', '.join(_CPUS)}")
    own_bits, own_features = _CPUS[cpu]
    vl_min = _bits(target, "vl_min", default=VECTOR_LENGTHS[0])
    vector_bits = _bits(target, "vector_bits", default=max(own_bits, vl_min))
    if vector_bits < vl_min:
        raise ArgumentError(
            "llvm_sve.vector_bits",
            f"The vectors of '{target.text}' have {vector_bits} bits, and the code may rely on {vl_min}.",
            hint="Give vl_min= at most the value of vector_bits=.",
        )
    features = _features(target, own_features)
    streaming_bits = _bits(target, "streaming_bits", default=vector_bits)
    if target.option("streaming_bits") and "sme" not in features:
        raise ArgumentError(
            "llvm_sve.streaming_bits",
            f"The CPU of '{target.text}' has no streaming mode.",
            hint="Add sme to features=.",
        )
    return SveCpu(cpu, features, vl_min, vector_bits, streaming_bits)


def machine_of_cpu(target: Target) -> Machine:
    """Return the machine of a target: its vectors are scalable, from the least length that code may rely on.

    >>> found = machine_of_cpu(Target.parse("llvm-sve:vl_min=256,vector_bits=512"))
    >>> found.is_scalable, found.vector_bits, found.vector_registers
    (True, 256, 32)
    """
    described, cpu = machine_of(target), cpu_of(target)
    return replace(
        described,
        vector_bits=cpu.vl_min,
        is_scalable=True,
        fixed_vscale=None,
        block_products=BLOCK_PRODUCTS if cpu.has_sme else (),
    )


def emulator_cpu(cpu: SveCpu) -> str:
    """Return the CPU with its lengths of vectors, as the option `-cpu` of QEMU.

    >>> emulator_cpu(cpu_of(Target.parse("llvm-sve:vector_bits=512,features=sme,streaming_bits=256")))
    'max,sve-max-vq=4,sve-default-vector-length=64,sme-default-vector-length=32'
    """
    # Linux starts processes with vectors of at most 512 bits unless it is told otherwise.
    size, streaming = cpu.vector_bits // 8, cpu.streaming_bits // 8
    lengths = f"sve-default-vector-length={size},sme-default-vector-length={streaming}"
    return f"max,sve-max-vq={size // 16},{lengths}"


def explicit_target(target: Target) -> str:
    """Return the target with all options of the CPU, and the caches and cores of a machine with SVE on which
    this process runs.

    >>> explicit_target(Target.parse("llvm-sve:vl_min=256,l2=1048576"))
    'llvm-sve:cpu=generic,features=sve,vl_min=256,vector_bits=256,l2=1048576'
    """
    cpu = cpu_of(target)
    options = {
        "cpu": cpu.name,
        "features": "+".join(cpu.features),
        "vl_min": str(cpu.vl_min),
        "vector_bits": str(cpu.vector_bits),
    }
    if cpu.has_sme:
        options["streaming_bits"] = str(cpu.streaming_bits)
    given = {key: value for key, value in target.options if key in (*_MODEL, _THREADS)}
    return Target(target.backend, tuple({**options, **_host_model(), **given}.items())).text


def _host_model() -> dict[str, str]:
    if sve_vector_bits() is None:
        return {}
    return {key: value for key, value in host().options.items() if key in _MODEL}


def _bits(target: Target, key: str, *, default: int) -> int:
    text = target.option(key, str(default))
    lengths = {str(bits): bits for bits in VECTOR_LENGTHS}
    if text not in lengths:
        raise _value_error(target, key, f"one of {', '.join(lengths)}")
    return lengths[text]


def _features(target: Target, own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the features of the CPU and those that the target adds."""
    text = target.option("features")
    added = text.split("+") if text else []
    if not set(added) <= set(SVE_FEATURES):
        raise _value_error(target, "features", f"some of {', '.join(SVE_FEATURES)}, joined by '+'")
    return tuple(name for name in SVE_FEATURES if name in own or name in added)


def _value_error(target: Target, key: str, expected: str) -> ArgumentError:
    return ArgumentError(
        "llvm_sve.option_value",
        f"The option {key} of '{target.text}' is '{target.option(key)}'.",
        hint=f"Expected {expected}.",
    )
