"""The files of runs: one file per run, with the results of each part under the name of their series."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmarks.ordered_parts import SERIES
from benchmarks.records import Run, RunHeader

RESULTS = Path(__file__).parent / "results"


def file_name(run: Run) -> str:
    """Return a name of machine and run, so that a run replaces the last such one of the same CPU."""
    return "-".join(filter(None, (run.machine.name, run.name))) + ".json"


def save_run(run: Run, folder: Path = RESULTS) -> Path:
    """Write the run's file, in place of an older run with the same name, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(run)
    path.write_bytes(_lines(run))
    return path


def _lines(run: Run) -> bytes:
    """Return a run as JSON with a line for each cell and record, so that a difference shows what was
    measured anew."""
    fields = []
    header = {name: getattr(run, name) for name in RunHeader.__struct_fields__}
    results = {series.name: run.results_of(series.record) for series in SERIES}
    for name, value in msgspec.to_builtins({**header, **results}).items():
        separator, ends = (
            (b",\n  ", (b"[\n  ", b"\n ]")) if _is_records(value) else (b"", (b"", b""))
        )
        items = value if _is_records(value) else [value]
        text = separator.join(map(msgspec.json.encode, items))
        fields.append(msgspec.json.encode(name) + b": " + ends[0] + text + ends[1])
    return b"{\n " + b",\n ".join(fields) + b"\n}\n"


def _is_records(value: object) -> bool:
    return isinstance(value, (list, tuple)) and bool(value)


def load_run(path: Path) -> Run:
    """Load a stored run."""
    fields = msgspec.json.decode(path.read_bytes())
    results = (
        msgspec.convert(one, series.record)
        for series in SERIES
        for one in fields.get(series.name, ())
    )
    header = msgspec.convert(fields, RunHeader)
    return Run(**msgspec.structs.asdict(header), results=tuple(results))


def stored_runs(folder: Path = RESULTS) -> dict[Path, Run]:
    """Return all stored runs in the order of vendors and names."""
    runs = ((path, load_run(path)) for path in folder.glob("*.json"))
    return dict(sorted(runs, key=lambda pair: (pair[1].machine.vendor, *_names(pair[1]))))


def _names(run: Run) -> tuple[str, bool, str]:
    """Return the key by which the runs of a vendor are sorted; the one without a name comes first."""
    return run.machine.name, run.name is not None, str(run.name)
