"""Runs checks by number in several processes that may crash."""

from __future__ import annotations

import resource
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Generic, NamedTuple, Self, TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

BATCH, MAX_FAILURES = 40, 10
ITEM_TIMEOUT_SECONDS = 300.0
"""Seconds after which an item fails; some items take half a minute."""


MAX_MEMORY = 8 << 30
"""The memory limit of a process in bytes, because steps may align buffers to any number."""


class TooLong(BaseException):
    """A `BaseException`, so that the checked code does not handle it."""


def _limit_memory() -> None:
    """Limits memory, so that one process cannot exhaust that of the others."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TooLong` in the main thread after so many seconds."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Failure(NamedTuple):
    """A failed item: its number, the reason, and whether it is a verdict; otherwise the process raised an
    error or crashed."""

    number: int
    what: str
    is_verdict: bool = True


@dataclass
class Tally:
    """The results of a batch: the numbers of checked items, of those run as machine code, and of rejected
    items by reason. Tallies are added field by field; sets are united."""

    judged: int = 0
    native: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Self) -> None:
        for name, value in vars(other).items():
            mine = getattr(self, name)
            setattr(self, name, mine | value if isinstance(value, set) else mine + value)

    @property
    def said(self) -> str:
        """A summary in a few words."""
        return f"{self.native} native, {self.refused.total()} refused, {len(self.failures)} wrong"


T = TypeVar("T", bound=Tally)


@dataclass(frozen=True)
class Task(Generic[T]):
    """`judge` adds the results of the `each` items of a number to a tally; `new` makes an empty tally."""

    name: str
    judge: Callable[[int, T], None]
    new: Callable[[], T]
    each: int = 1

    def run(self, wanted: range, *, processes: int, seconds: float) -> T:
        """Runs all items in several processes, until they are done, the time is over, or enough have failed.
        Reports each failure immediately."""
        with TemporaryDirectory() as trail, _progress() as progress:
            shown = progress.add_task(self.name, total=self.each * len(wanted), said="")

            def show(tally: T, total: T) -> None:
                progress.update(shown, completed=total.judged, said=total.said)
                for failure in tally.failures:
                    what = f"{self.name}: {failure.number} is wrong: {failure.what}"
                    progress.console.print(what, markup=False, highlight=False)

            return self._run(wanted, trail, show, processes=processes, seconds=seconds)

    def _run(
        self,
        wanted: range,
        trail: str,
        show: Callable[[T, T], None],
        *,
        processes: int,
        seconds: float,
    ) -> T:
        total, end = self.new(), time.monotonic() + seconds
        size = max(BATCH // self.each, 1)
        batches = deque(tuple(wanted[at : at + size]) for at in range(0, len(wanted), size))

        def is_going_on() -> bool:
            return time.monotonic() < end and len(total.failures) < MAX_FAILURES

        while batches and is_going_on():
            # A process that crashed ends its pool: the next one goes on with what is left.
            with ProcessPoolExecutor(processes, initializer=_limit_memory) as pool:
                for outcome in self._outcomes(pool, batches, trail, is_going_on, processes):
                    total.add(outcome)
                    show(outcome, total)
        return total

    def _outcomes(
        self,
        pool: ProcessPoolExecutor,
        batches: deque[tuple[int, ...]],
        trail: str,
        is_going_on: Callable[[], bool],
        processes: int,
    ) -> Iterator[T]:
        """Take batches and yield their results, until there are no more, or a process crashed. Items that
        a crash left undone are put back."""
        waiting: dict[Future[T], tuple[int, ...]] = {}
        is_broken = False
        while waiting or (batches and is_going_on() and not is_broken):
            while batches and len(waiting) < 2 * processes and is_going_on() and not is_broken:
                batch = batches.popleft()
                waiting[pool.submit(self._batch, batch, _trail_of(trail, batch))] = batch
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for tally in done:
                batch = waiting.pop(tally)
                if isinstance(tally.exception(), BrokenProcessPool):
                    is_broken = True
                    failed, remaining = self._crashed(batch, _trail_of(trail, batch))
                    batches.extendleft([remaining] if remaining else [])
                    yield failed
                else:
                    yield tally.result()

    def _batch(self, numbers: tuple[int, ...], at: Path) -> T:
        """Runs a batch in a separate process, which records the item that it works on."""
        tally = self.new()
        for number in numbers:
            at.write_text(str(number))
            try:
                with at_most(ITEM_TIMEOUT_SECONDS):
                    self.judge(number, tally)
            except TooLong:
                what = f"takes longer than {ITEM_TIMEOUT_SECONDS:.0f} s"
                tally.failures.append(Failure(number, what, is_verdict=False))
            except Exception as error:  # noqa: BLE001
                # A defect, whatever it is; the items after it are judged nevertheless.
                what = f"{type(error).__name__}: {error}"
                tally.failures.append(Failure(number, what, is_verdict=False))
        at.unlink()
        return tally

    def _crashed(self, batch: tuple[int, ...], at: Path) -> tuple[T, tuple[int, ...]]:
        """The failure of the item on which a process worked when its pool broke, and the other items, whose
        results are lost."""
        total = self.new()
        if not at.exists():
            return total, batch
        number = int(at.read_text())
        at.unlink()
        total.failures.append(Failure(number, "the process crashed", is_verdict=False))
        return total, tuple(other for other in batch if other != number)


def _trail_of(trail: str, batch: tuple[int, ...]) -> Path:
    """The file in which a process records the item of a batch that it works on."""
    return Path(trail, str(batch[0]))


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}"),
        TimeRemainingColumn(),
    )
