"""Tables of the chosen formats beside all others."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.goals import CHOICE_OF_BEST, CHOICE_OF_CSR
from benchmarks.records import ChoiceTime
from benchmarks.report.text_tables import Row, Sheet


def choices_sheet(times: Sequence[ChoiceTime]) -> Sheet:
    """Return, for each case, the times of CSR, of the best format and of the chosen one, and their ratios."""
    columns = ("matrix", "best format", "chosen", "op", "K", "dtype", "thr")
    figures = ("CSR ms", "best ms", "chosen ms", "best / chosen", "CSR / chosen", "")
    best, csr = min(one.of_best for one in times), min(one.of_csr for one in times)
    met = sum(one.of_best >= CHOICE_OF_BEST and one.of_csr >= CHOICE_OF_CSR for one in times)
    verdict = "met" if met == len(times) else f"MISSED by {len(times) - met} of {len(times)}"
    sheet = Sheet(
        "the chosen format: least time of a format / time of the chosen one",
        (*columns, *figures),
        words=3,
        note=f"least of the best {best:.2f} (wanted {CHOICE_OF_BEST:.2f}), of CSR {csr:.2f} (wanted "
        f"{CHOICE_OF_CSR:.2f}): {verdict}",
    )
    for one in times:
        case = (one.matrix, one.best, one.chosen, *case_of(one))
        ms = (one.times_ms[name] for name in ("csr", one.best, one.chosen))
        ratios = (f"{one.of_best:.2f}", f"{one.of_csr:.2f}")
        is_met = one.of_best >= CHOICE_OF_BEST and one.of_csr >= CHOICE_OF_CSR
        sheet.rows.append(
            (*case, *(f"{each:.3g}" for each in ms), *ratios, "" if is_met else "BELOW")
        )
    return sheet


def format_times_sheet(times: Sequence[ChoiceTime]) -> Sheet:
    """Return the times of all formats for each case."""
    formats = list(dict.fromkeys(name for one in times for name in one.times_ms))
    sheet = Sheet("least ms of each format", ("matrix", "op", "K", "dtype", "thr", *formats))
    for one in times:
        ms = (f"{one.times_ms[name]:.3g}" if name in one.times_ms else "-" for name in formats)
        sheet.rows.append((one.matrix, *case_of(one), *ms))
    return sheet


def case_of(one: ChoiceTime) -> Row:
    """Return operator, features, dtype and threads in words."""
    return one.op, str(one.features), one.dtype, str(one.threads)
