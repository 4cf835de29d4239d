"""The options of the command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from benchmarks import contenders
from benchmarks.gpu.gpu_cases import GPU_OPS, PRODUCT_DTYPES, PRODUCT_SIZES
from benchmarks.gpu.gpu_contenders import GPU_CONTENDERS
from benchmarks.harness.rounds import SamplingPlan
from benchmarks.harness.tasks import MAX_CASE_BYTES, Selection
from benchmarks.matrices import NAMES
from benchmarks.model_contenders import MODEL_CONTENDERS
from benchmarks.models.model_problems import MODEL_NAMES
from benchmarks.operators import PROBLEMS
from benchmarks.ordered_parts import PARTS
from benchmarks.part import RunPart
from benchmarks.parts import kernels
from benchmarks.run_files import RESULTS
from gossamer.targets.parse_target import DEFAULT_TARGET

QUICK_MATRICES = (
    "cora",
    "ogbn_arxiv",
    "bcsstk16",
    "dlmc_tr_mag80_dec3_ffn1",
    "blocks_4096",
)
QUICK_FEATURES = (32, 512)
PLACES = ("command", "output", "python", "variants", "no_save")
"""Options that are not stored: they are about this machine."""

REPEATED = {"parts", "rounds", "budget", "machine"}
"""Options that do not select what is measured in a part. A run with them replaces an earlier one without."""

COMMANDS = ("run", "report", "check-model", "gpu")
GPU_SUITES = {
    "instructions": "matrix instructions, with each sparsity selector",
    "warpgroups": "instructions of warpgroups, with each selector, place of A, and order of A and B",
    "programs": "programs of the corpus",
    "conformance": "other tests of the suite for backends",
}
"""The checks of a GPU that a run may shorten."""
ALL = 10**6
GPU_TARGET = "cuda-mma-sp:arch=sm_90a"

V = TypeVar("V")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the commands; defaults are those of a full run."""
    command = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="gossamer and other contenders, each in a process of its own; without a command: run",
    )
    commands = command.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="measure, print and store",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="parts of a run, in the order of measurement:\n" + part_lines(),
    )
    add_selection(run)
    add_manner(run)
    report = commands.add_parser("report", help="print a stored run; write its page and picture")
    report.add_argument("file", type=Path, metavar="FILE")
    report.add_argument(
        "--readme", action="store_true", help="show the stored runs in benchmarks/README.md"
    )
    check = commands.add_parser(
        "check-model",
        help="rate what the model of formats chooses now by the times of a stored run (part choice)",
    )
    check.add_argument("file", type=Path, metavar="FILE")
    check.add_argument(
        "--target",
        default=DEFAULT_TARGET,
        metavar="TARGET",
        help="the machine of the run, if it is not this one: its vectors and caches",
    )
    add_gpu(commands.add_parser("gpu", help="check and measure a GPU, and store the results"))
    return command


def add_gpu(gpu: argparse.ArgumentParser) -> None:
    """Add the options of runs on a GPU."""
    add = gpu.add_argument
    add("--target", default=GPU_TARGET, metavar="TARGET", help=f"by default {GPU_TARGET}")
    for name, items in GPU_SUITES.items():
        add(f"--{name}", type=int, default=ALL, metavar="N", help=f"{items}; by default all")
    add("--fuzzed", type=int, default=300, metavar="N", help="random programs (300)")
    add("--seed", default="0", help="of the random programs; any text")
    add("--op", nargs="*", choices=GPU_OPS, default=list(GPU_OPS))
    add("--matrix", nargs="*", choices=NAMES, metavar="NAME", default=list(NAMES))
    add("--features", nargs="+", type=positive, metavar="K", default=[32, 64, 128, 256, 512])
    add(
        "--size",
        nargs="*",
        type=product_size,
        default=list(PRODUCT_SIZES),
        metavar="MxNxK",
        help="of products of 2:4 matrices and of blocks",
    )
    add("--dtype", nargs="+", choices=PRODUCT_DTYPES, default=list(PRODUCT_DTYPES), help="of those")
    add("--contenders", nargs="+", choices=tuple(GPU_CONTENDERS), default=list(GPU_CONTENDERS))
    add("--calls", type=positive, default=30, help="timed calls of each contender (30)")
    add("--python", action="append", type=gpu_interpreter, default=[], metavar="CONTENDER=PATH")
    add("--output", type=Path, default=RESULTS, metavar="FOLDER", help="where results are stored")
    add("--no-save", action="store_true", help="print only, store nothing")


def product_size(text: str) -> tuple[int, int, int]:
    """Parse rows, columns, and columns of the dense matrix.

    >>> product_size("4096x4096x1024")
    (4096, 4096, 1024)
    """
    rows, columns, width = map(positive, text.split("x"))
    return rows, columns, width


def gpu_interpreter(text: str) -> tuple[str, str]:
    """Parse `torch=/path/to/python`."""
    name, _, path = text.partition("=")
    if not path or name not in GPU_CONTENDERS:
        raise argparse.ArgumentTypeError(f"'{text}'; expected CONTENDER=PATH")
    return name, path


def part_lines() -> str:
    """Return a line for each part: its name, what it measures, and the options that select what."""
    lines = []
    for part in PARTS.values():
        selected = f" ({', '.join(f'--{name}' for name in part.options)})" if part.options else ""
        lines.append(f"  {part.name:12} {part.description}{selected}")
    return "\n".join(lines)


def add_selection(run: argparse.ArgumentParser) -> None:
    """Add the options that select what to measure."""
    add = run.add_argument
    add("--op", nargs="+", choices=tuple(PROBLEMS), default=list(PROBLEMS))
    add("--matrix", nargs="+", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    add("--features", nargs="+", type=positive, metavar="K", help="of the dense operands")
    add("--threads", nargs="+", type=positive)
    add("--dtype", nargs="+", choices=("float32", "float64"))
    add(
        "--contenders",
        nargs="+",
        choices=tuple(dict.fromkeys((*contenders.NAMES, *MODEL_CONTENDERS))),
        help="by default the usual ones of an operator",
    )
    add("--model", nargs="+", choices=MODEL_NAMES, help="of the part models; by default all")
    add("--parts", nargs="+", choices=tuple(PARTS), help="by default all of them")
    add("--quick", action="store_true", help="a smaller selection, in about three minutes")


def add_manner(run: argparse.ArgumentParser) -> None:
    """Add the options about how to measure and where to store results."""
    add = run.add_argument
    add("--rounds", type=positive, help="samples of each contender (5, quick 3)")
    add("--budget", type=float, metavar="S", help="most seconds for the rounds of a batch (120)")
    most = MAX_CASE_BYTES // 10**6
    add(
        "--max-mb",
        type=positive,
        default=most,
        metavar="MB",
        help=f"larger cases are left out ({most})",
    )
    add(
        "--python",
        action="append",
        type=interpreter,
        default=[],
        metavar="CONTENDER=PATH",
        help="the interpreter of a contender, if it lives in another environment",
    )
    add(
        "--variants",
        type=Path,
        metavar="FILE",
        help="further contenders: VARIANTS of this Python file",
    )
    add("--machine", metavar="NAME", help="the machine's name in the results")
    add("--output", type=Path, default=RESULTS, metavar="FOLDER", help="where results are stored")
    add("--no-save", action="store_true", help="print only, store nothing")


def positive(text: str) -> int:
    """Parse a number from 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options; the default command is `run`."""
    named = arguments[:1] and arguments[0] in (*COMMANDS, "-h", "--help")
    return parser().parse_args(list(arguments) if named else ["run", *arguments])


def interpreter(text: str) -> tuple[str, str]:
    """Parse `mkl=/path/to/python`; the name is that of a contender or of a file in `contenders`."""
    name, _, path = text.partition("=")
    registered = contenders.CONTENDERS | MODEL_CONTENDERS
    names = {*registered, *(contender.module for contender in registered.values())}
    if not path or name not in names:
        raise argparse.ArgumentTypeError(f"'{text}'; expected CONTENDER=PATH")
    return name, path


def python_of(chosen: argparse.Namespace, name: str) -> str:
    """Return the interpreter of a contender, by default the running one."""
    named = dict(chosen.python)
    module = contenders.CONTENDERS[name].module
    return str(named.get(name, named.get(module, sys.executable)))


def selection_of(chosen: argparse.Namespace, variants: Iterable[str] = ()) -> Selection:
    """Return the selection; `--quick` replaces the defaults."""
    matrices, features = chosen.matrix, chosen.features
    threads, dtypes, among = chosen.threads, chosen.dtype, None
    if chosen.quick:
        matrices, among = matrices or QUICK_MATRICES, QUICK_FEATURES
        threads, dtypes = threads or (2,), dtypes or ("float32",)
    return Selection(
        ops=tuple(chosen.op),
        threads=optional(threads),
        dtypes=optional(dtypes),
        matrices=optional(matrices),
        features=optional(features),
        features_among=among,
        contenders=optional(chosen.contenders),
        variants=tuple(variants),
    )


def optional(values: Iterable[V] | None) -> tuple[V, ...] | None:
    """Return a tuple, or None for None."""
    return None if values is None else tuple(values)


def selected_parts(chosen: argparse.Namespace) -> tuple[RunPart, ...]:
    """Return the parts to run, in the order of measurement."""
    if chosen.parts:
        return tuple(part for name, part in PARTS.items() if name in chosen.parts)
    return tuple(part for part in PARTS.values() if part.is_quick or not chosen.quick)


def plan_of(chosen: argparse.Namespace) -> SamplingPlan:
    """Return the numbers and durations of measurements."""
    rounds, budget = chosen.rounds or (3 if chosen.quick else 5), chosen.budget or 120.0
    return SamplingPlan(rounds=rounds, budget_seconds=budget)


def settings(chosen: argparse.Namespace) -> dict[str, str]:
    """Return the options that were given, without paths of this machine."""
    usual = vars(parse_options([]))
    return {
        key: " ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in vars(chosen).items()
        if value != usual[key] and key not in PLACES
    }


def run_name(chosen: argparse.Namespace) -> str | None:
    """Return what the name of a stored run says besides that of the machine: the parts, unless the operators
    were measured; "selected" if other options than the numbers of measurements were given.

    >>> run_name(parse_options([])), run_name(parse_options(["--parts", "conversions", "first"]))
    (None, 'first-conversions')
    >>> run_name(parse_options(["--op", "spmm", "--quick"]))
    'selected'
    """
    parts = selected_parts(chosen)
    words = [] if kernels.PART in parts else [part.name for part in parts]
    if not settings(chosen).keys() <= REPEATED:
        words.append("selected")
    return "-".join(words) or None
