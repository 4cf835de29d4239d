"""Tables of conversions between formats."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.goals import CONVERSION_LEAST, CONVERSION_MEAN, geometric_mean
from benchmarks.records import ConversionTime, FormatBuild
from benchmarks.report.text_tables import Sheet


def conversions_sheet(times: Sequence[ConversionTime]) -> Sheet:
    """Return the time of SciPy over ours for all pairs of formats: geometric mean over matrices (least)."""
    formats = list(dict.fromkeys(one.source for one in times))
    ratios = [one.ratio for one in times]
    mean, least = geometric_mean(ratios), min(ratios)
    verdict = "met" if mean >= CONVERSION_MEAN and least >= CONVERSION_LEAST else "MISSED"
    below = sum(ratio < CONVERSION_LEAST for ratio in ratios)
    sheet = Sheet(
        "conversions, one thread: time of SciPy / time of gossamer, geometric mean (least)",
        ("from", *(f"to {name}" for name in formats)),
        note=f"mean {mean:.2f} (wanted {CONVERSION_MEAN:.2f}), least {least:.2f} (wanted "
        f"{CONVERSION_LEAST:.2f}), {below} of {len(ratios)} below: {verdict}",
    )
    for source in formats:
        texts = []
        for target in formats:
            here = [one.ratio for one in times if (one.source, one.target) == (source, target)]
            texts.append(f"{geometric_mean(here):.2f} ({min(here):.2f})" if here else "-")
        sheet.rows.append((source, *texts))
    return sheet


def conversion_times_sheet(times: Sequence[ConversionTime]) -> Sheet:
    """Return the milliseconds of gossamer and of SciPy for each matrix and pair of formats."""
    columns = ("matrix", "nonzeros", "from", "to", "gossamer ms", "SciPy ms", "ratio")
    sheet = Sheet("conversions, one thread: median ms", columns, words=4)
    for one in times:
        figures = (f"{one.gossamer_ms:.3g}", f"{one.scipy_ms:.3g}", f"{one.ratio:.2f}")
        sheet.rows.append((one.matrix, f"{one.nnz:,}", one.source, one.target, *figures))
    return sheet


def builds_sheet(builds: Sequence[FormatBuild]) -> Sheet:
    """Return the seconds to build formats of a large matrix."""
    columns = ("format", "nonzeros", "seconds", "first call", "")
    sheet = Sheet("building a format of CSR on two threads; wanted: 0.3 s", columns)
    for one in builds:
        figures = (f"{one.nnz:,}", f"{one.seconds:.3f}", f"{one.first_seconds:.3f}")
        sheet.rows.append((one.format, *figures, "met" if one.is_met else "MISSED"))
    return sheet
