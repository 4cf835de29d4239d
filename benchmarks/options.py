"""The options of the command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks import compile_time, peers
from benchmarks.harness.rounds import Plan
from benchmarks.harness.tasks import Selection
from benchmarks.matrices import NAMES
from benchmarks.operators import OPERATORS
from benchmarks.records import RESULTS

PARTS = ("roofline", "kernels", "calls", "startup", "compile", "python", "batches")
QUICK_MATRICES = (
    "cora",
    "ogbn_arxiv",
    "bcsstk16",
    "dlmc_tr_mag80_dec3_ffn1",
    "blocks_4096",
)
QUICK_FEATURES = (32, 128)


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the commands; defaults are those of a full run."""
    command = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="gossamer against its peers, interleaved in one run; without a command: run",
    )
    commands = command.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure, print and store")
    add_selection(run)
    add_manner(run)
    report = commands.add_parser("report", help="print a stored run; write its page and picture")
    report.add_argument("file", type=Path, metavar="FILE")
    report.add_argument(
        "--readme", action="store_true", help="show this run in benchmarks/README.md"
    )
    return command


def add_selection(run: argparse.ArgumentParser) -> None:
    """Adds the options that select what to measure."""
    add = run.add_argument
    add("--op", nargs="+", choices=tuple(OPERATORS), default=list(OPERATORS))
    add("--matrix", nargs="+", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    add("--features", nargs="+", type=positive, metavar="K", help="of the dense operands")
    add("--threads", nargs="+", type=positive)
    add("--dtype", nargs="+", choices=("float32", "float64"), default=["float32"])
    add("--peers", nargs="+", choices=peers.NAMES, default=list(peers.NAMES))
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    add("--quick", action="store_true", help="a smaller selection, in about three minutes")


def add_manner(run: argparse.ArgumentParser) -> None:
    """Adds the options about how to measure and where to store results."""
    add = run.add_argument
    add("--rounds", type=positive, help="samples of each contender (9, quick 5)")
    add("--budget", type=float, default=30.0, metavar="S", help="most seconds for a cell")
    add("--torch-python", metavar="PATH", help="an interpreter that has torch")
    add(
        "--variants",
        type=Path,
        metavar="FILE",
        help="further contenders: VARIANTS of this Python file",
    )
    add("--machine", default="", metavar="NAME", help="the machine's name in the results")
    add("--output", type=Path, default=RESULTS, metavar="FOLDER", help="where results are stored")
    add("--no-save", action="store_true", help="print only, store nothing")


def positive(text: str) -> int:
    """Parses a number from 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Returns the options; the default command is `run`."""
    named = arguments[:1] and arguments[0] in ("run", "report", "-h", "--help")
    return parser().parse_args(list(arguments) if named else ["run", *arguments])


def selection_of(chosen: argparse.Namespace) -> Selection:
    """Returns the selection; `--quick` replaces the defaults."""
    matrices, features, threads = chosen.matrix, chosen.features, chosen.threads
    if chosen.quick:
        matrices, features = matrices or QUICK_MATRICES, features or QUICK_FEATURES
        threads = threads or (2,)
    return Selection(
        ops=tuple(chosen.op),
        threads=tuple(threads or (1, 2)),
        dtypes=tuple(chosen.dtype),
        matrices=None if matrices is None else tuple(matrices),
        features=None if features is None else tuple(features),
    )


def plan_of(chosen: argparse.Namespace) -> Plan:
    """Returns the numbers and durations of measurements."""
    return Plan(rounds=chosen.rounds or (5 if chosen.quick else 9), budget_seconds=chosen.budget)


def compile_processes(chosen: argparse.Namespace) -> int:
    """Returns the number of fresh processes for compile times."""
    return compile_time.FEW_PROCESSES if chosen.quick else compile_time.PROCESSES


def settings(chosen: argparse.Namespace) -> dict[str, str]:
    """Returns the options to store, without paths of this machine."""
    places = ("command", "output", "torch_python", "variants", "no_save")
    return {
        key: " ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in vars(chosen).items()
        if value and key not in places
    }
