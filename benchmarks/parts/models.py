"""Layers of published models, in PyTorch: a forward pass, or a forward and a backward pass.

Contenders take turns as for operators, each in a process of its own. Before that, the output and all
gradients of each are compared with an oracle in float64.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from benchmarks.contenders.contender import Contender, UnavailableError
from benchmarks.goals import geometric_mean
from benchmarks.harness.job import Job
from benchmarks.harness.process import ContenderStart, Remote, memory_folder
from benchmarks.harness.progress import Bar
from benchmarks.harness.rounds import measure_rounds
from benchmarks.model_contenders import MODEL_CONTENDERS, OUR_LAYERS
from benchmarks.models.model_case import write_model_case
from benchmarks.models.model_problem import ALLOWED_MODEL_ERROR, ModelProblem, relative_error
from benchmarks.models.model_problems import Model, chosen_models
from benchmarks.part import PartError, RunPart, Series
from benchmarks.text_tables import Sheet
from gossamer_support.arrays import Array

THREADS = 2
SECONDS_PER_PROBLEM = 12.0
"""Used only to estimate the duration."""


class ModelTime(msgspec.Struct, frozen=True):
    """Median milliseconds of a step of a model by contender, errors of those with a wrong result, and why
    others do not take part."""

    model: str
    data: str
    detail: str | None
    step: str
    threads: int
    times_ms: dict[str, float]
    wrong: dict[str, float] = {}
    skipped: dict[str, str] = {}
    is_disturbed: bool = False

    @property
    def fastest_other(self) -> str | None:
        """The fastest contender besides gossamer; None if there is none."""
        others = [name for name in self.times_ms if name != OUR_LAYERS]
        return min(others, key=self.times_ms.__getitem__, default=None)

    @property
    def ratio(self) -> float | None:
        """The time of the fastest other contender over that of gossamer; None if either is missing."""
        other = self.fastest_other
        if other is None or OUR_LAYERS not in self.times_ms:
            return None
        return self.times_ms[other] / self.times_ms[OUR_LAYERS]


class _ModelStart(ContenderStart, frozen=True):
    """The command that starts the process of a contender for models."""

    @property
    def contender(self) -> Contender:
        return MODEL_CONTENDERS[self.name]

    def command(self) -> list[str]:
        """Return the command."""
        return [self.python, "-P", "-m", "benchmarks.model_contenders.model_worker", self.name]


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    models = chosen_models(job.chosen.model)
    return SECONDS_PER_PROBLEM * sum(
        len(model.data) * max(len(model.channels), 1) for model in models
    )


def measure_models(job: Job, bar: Bar) -> Iterator[ModelTime]:
    """Measure all available problems with the contenders that their interpreters have. The part fails at the
    end if a result was wrong."""
    wrong: list[str] = []
    for model in chosen_models(job.chosen.model):
        remotes = _remotes_of(model, job)
        try:
            for problem in model.problems():
                bar.describe(_text_of(problem))
                for time in measure_problem(problem, remotes, job, bar):
                    wrong += [f"{name}: {_text_of(problem)}, {time.step}" for name in time.wrong]
                    yield time
                bar.advance(SECONDS_PER_PROBLEM)
        finally:
            for remote in remotes.values():
                remote.close()
    if wrong:
        raise PartError(f"wrong results of {'; '.join(wrong)}")


def _text_of(problem: ModelProblem) -> str:
    return " ".join(filter(None, (problem.model, problem.data, problem.detail)))


def _remotes_of(model: Model, job: Job) -> dict[str, Remote]:
    """Return the contenders that have a model. A name in `--python` is that of a contender or of its file."""
    named: dict[str, str] = dict(job.chosen.python)
    remotes = {}
    chosen = job.chosen.contenders
    for name, contender in MODEL_CONTENDERS.items():
        if model.name in contender.ops and (chosen is None or name in chosen):
            default = _ModelStart(name).python
            python = named.get(name, named.get(contender.module, default))
            remotes[name] = Remote(_ModelStart(name, python))
    return remotes


def measure_problem(
    problem: ModelProblem, remotes: Mapping[str, Remote], job: Job, bar: Bar
) -> list[ModelTime]:
    """Return the times of all steps of a problem."""
    expected = problem.expected_outputs()
    times = []
    for step in problem.steps:
        bar.details(f"{_text_of(problem)}, {step}")
        times.append(_measure_step(problem, step, expected, remotes=remotes, job=job))
    return times


def _measure_step(
    problem: ModelProblem,
    step: str,
    expected: Sequence[Array],
    *,
    remotes: Mapping[str, Remote],
    job: Job,
) -> ModelTime:
    """Prepare and verify a step with all contenders, and time those with a right result."""
    skipped, wrong = {}, {}
    taking_part: dict[str, Remote] = {}
    for name, remote in remotes.items():
        try:
            error = _prepared_error(remote, problem, step, expected)
        except UnavailableError as unavailable:
            skipped[name] = str(unavailable)
            continue
        # So, because an error of NaN is not less than anything.
        if error < ALLOWED_MODEL_ERROR:
            taking_part[name] = remote
        else:
            wrong[name] = error
    entry = (step, THREADS)
    samples = measure_rounds(taking_part, {name: [entry] for name in taking_part}, job.plan)
    chosen = {name: samples.choose_samples(name, entry) for name in samples.by_name}
    for remote in remotes.values():
        with suppress(UnavailableError):
            remote.forget()
    return ModelTime(
        problem.model,
        problem.data,
        problem.detail,
        step,
        THREADS,
        {name: _in_ms(seconds) for name, (seconds, _) in chosen.items()},
        wrong,
        skipped | samples.ended,
        is_disturbed=any(disturbed for _, disturbed in chosen.values()),
    )


def _prepared_error(
    remote: Remote, problem: ModelProblem, step: str, expected: Sequence[Array]
) -> float:
    """Return the error of a contender's result. Raises `UnavailableError` if it does not take part."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        description = write_model_case(problem.case(step), Path(folder))
        skipped = remote.prepare(step, Path(folder), description, [THREADS])
    if skipped:
        raise UnavailableError(skipped[THREADS])
    wanted = expected if problem.case(step).is_training else expected[:1]
    return relative_error(remote.result(step, THREADS), wanted)


def _in_ms(seconds: Sequence[float]) -> float:
    return float(f"{1e3 * statistics.median(seconds):.4g}")


def models_sheet(times: Sequence[ModelTime]) -> Sheet:
    """Return the ratios of each problem, and for each model whether they meet its goal."""
    columns = ("model", "data", "step", "fastest other", "ms", "gossamer ms", "ratio", "")
    sheet = Sheet(
        "models: time of the fastest other contender / time of gossamer", columns, words=4
    )
    for model in chosen_models(None):
        here = [time for time in times if time.model == model.name and time.ratio is not None]
        sheet.rows.extend(_row_of(time) for time in here)
        counted = [time.ratio for time in here if time.step in model.steps and time.ratio]
        if counted:
            sheet.rows.append(_verdict_row(model, counted))
    return sheet


def _row_of(time: ModelTime) -> tuple[str, ...]:
    other = time.fastest_other
    assert other is not None
    data = " ".join(filter(None, (time.data, time.detail)))
    figures = (
        f"{time.times_ms[other]:.3g}",
        f"{time.times_ms[OUR_LAYERS]:.3g}",
        f"{time.ratio:.2f}",
    )
    return (time.model, data, time.step, other, *figures, "disturbed" if time.is_disturbed else "")


def _verdict_row(model: Model, ratios: Sequence[float]) -> tuple[str, ...]:
    mean, least = geometric_mean(ratios), min(ratios)
    verdict = "met" if mean >= model.mean and least >= model.least else "MISSED"
    wanted = f"wanted {model.mean:.1f}, least {model.least:.1f}: {verdict}"
    steps = " and ".join(model.steps)
    return (model.name, "mean", steps, "", "", f"least {least:.2f}", f"{mean:.2f}", wanted)


def model_times_sheet(times: Sequence[ModelTime]) -> Sheet:
    """Return the times of all contenders."""
    names = list(MODEL_CONTENDERS)
    sheet = Sheet("models: median ms", ("model", "data", "step", *names), words=3)
    for time in times:
        data = " ".join(filter(None, (time.data, time.detail)))
        ms = (f"{time.times_ms[name]:.3g}" if name in time.times_ms else "-" for name in names)
        sheet.rows.append((time.model, data, time.step, *ms))
    return sheet


PART = RunPart(
    "models",
    "layers of published models in PyTorch, forward and backward, compared with torch and PyG",
    (Series("model_times", ModelTime, models_sheet, model_times_sheet),),
    estimated_seconds,
    measure_models,
    options=("model", "contenders"),
)
