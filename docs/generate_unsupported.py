"""Writes `unsupported.md`, the refusals that a user can meet, each with a program that meets it.

`python docs/generate_unsupported.py` rewrites the file; a test fails if it is out of date. Messages and
programs are those of `tests/golden/errors.json`, which `pytest tests/test_errors.py --update-golden` records.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "unsupported.md"
EXAMPLES = ROOT / "tests" / "golden" / "errors.json"
NOTE = "<!-- Generated from tests/golden/errors.json by docs/generate_unsupported.py. -->"
INTRODUCTION = """\
What the language has and nothing lowers yet is refused with an `UnsupportedError`, whose code is in
this list, whose message names the construct and whose hint says what works instead. Nothing is dropped
or guessed. Tests compare the codes with the source, and meet each refusal with the program shown.

Of the programs marked so, `gossamer.compile` says this. The other refusals are met by calling a pass, a
backend, a reader of formats or the interpreter with the module shown, on a target that lacks something,
or when a kernel is called."""
SECTIONS: dict[str, dict[str, str]] = {
    "In a text": {
        "parse.strides": "strides with which elements may overlap, and facts about buffers with "
        "strides; nested ones are a buffer of padded or reordered dimensions, whose accesses are "
        "checked, other numbers a buffer of one dimension",
        "parse.elem_offset": "a buffer that begins before its array; `align` and `offset_factor` are "
        "taken, and promise what nothing here needs",
        "verify.buffer.siblings": "a buffer with several varied axes of one parent, without the prefix "
        "sums of their products",
    },
    "On the way to the flat stage": {
        "lower.unsorted_lookup": "an access that searches for a coordinate in an axis that is not "
        "sorted and unique",
        "lower.preprocess.stage": "searches extracted from a module that is not at the position or "
        "the loop stage",
        "lower.preprocess.dtype": "results of searches kept as another dtype than int32 or int64",
        "lower.preprocess.nothing": "searches extracted where none depends on index arrays only",
        "lower.preprocess.order": "blocks marked `preprocess` where the rest of the program has "
        "to run before it",
        "lower.specialize_buffer.unknown": "a buffer specialized that is not passed",
        "lower.specialize_buffer.written": "a buffer replaced by an expression, that is written",
        "lower.specialize_buffer.search": "a buffer replaced by an expression, that is searched",
        "lower.specialize_buffer.rank": "a buffer specialized with another number of dimensions",
        "lower.specialize_buffer.dtype": "a buffer replaced by an expression of another dtype",
        "lower.specialize_buffer.shape": "a buffer of a fixed shape, where an extent is another "
        "constant or not a parameter by itself",
        "lower.search": "a search in a weight or in the condition of `while` that depends on the "
        "loop",
        "lower.parent": "an axis that varies or is compressed below a dense one that is iterated "
        "without its parent; an attached axis whose parent has a parent that is not iterated",
        "lower.storage": "a buffer with several varied axes of one parent, without offsets, in a module "
        "that was not verified",
        "lower.allocated_inside": "an `init` of a buffer that is allocated in a loop which feeds "
        "the reduction, before which the init runs",
        "lower.let_above_block": "a let that reads what the function writes, between a loop that "
        "is reduced and its block with `init`",
        "lower.unroll": "an unrolled loop whose extent is not constant",
        "lower.unroll_size": "an unrolled loop that would become too much code",
        "lower.vectorize": "a statement or expression without a vector form",
        "lower.unmasked_lane": "an access that is the same in all lanes and in bounds only under "
        "a condition on the lane",
        "lower.guarded_weight": "a weight that reads a buffer where that is not proved in bounds",
        "lower.flat_guards": "a flat module from elsewhere that has calls, and accesses that are "
        "not proved in bounds",
        "lower.meeting_inits": "an init of which several points may meet in one element, where a loop "
        "between them repeats the block, the size of the buffer is read from what is written, or "
        "iterations run at once",
        "lower.changing_size": "a buffer whose size is read from what the program writes",
        "lower.math": "a math function in the weight of a parallel loop; `fma` of float64 on a "
        "CPU without it",
        "lower.atomic": "a loop whose iterations share elements of a buffer that they also read, "
        "or write otherwise",
    },
    "In LLVM": {
        "llvm.stage.*": "a module of another stage than flat",
        "llvm.block": "a node of an earlier stage, which the passes replace",
        "llvm.iteration": "a node of an earlier stage, which the passes replace",
        "llvm.search": "a node of an earlier stage, which the passes replace",
        "llvm.and": "an operation that the dtype of its operands does not have",
        "llvm.floordiv": "an operation that the dtype of its operands does not have",
        "llvm.floormod": "an operation that the dtype of its operands does not have",
        "llvm.call.*": "a function that the target has no instruction for and that was not "
        "lowered to arithmetic",
        "llvm.lanes": "a number of lanes that is not 2, 4, 8, 16, 32 or 64",
        "llvm.scalable": "scalable vectors on a target without them",
        "llvm.scope.*": "a storage scope of GPUs",
        "llvm.for.*": "a loop that is still parallel, vectorized, unrolled, bound to threads or "
        "marked atomic",
        "llvm.if_then_else.vector": "`if_then_else` with a vector condition",
        "llvm.lane_reduce.*": "a reduction over lanes by an operation that floats do not have",
        "llvm.weight": "a weight that reads more values than a closure holds",
        "llvm.launch.threads": "a launch of a grid of threads",
        "llvm.launch.nested": "a launch outside the entry",
        "llvm.parallel_for.nested": "a parallel loop inside another function than the entry",
        "llvm.depth": "a function that nests too deeply",
    },
    "At run time": {
        "plugin.undeclared": "a module that needs a capability that the backend did not declare",
        "backend.array_dtype": "an array parameter whose dtype NumPy does not have",
        "backend.scalar_dtype": "a scalar parameter that is a vector, or a float other than "
        "float32 and float64",
        "backend.size": "a shape that is not made of constants, parameters, elements of index "
        "arrays and integer arithmetic",
        "backend.export": "an export of a kernel whose code is not an object file in ELF for a "
        "64-bit little-endian machine",
        "backend.relation": "at the loop stage, a declared relation of two index arrays of which "
        "one is not sorted, or `covers`: it cannot be checked",
        "formats.size": "a size in a format description that is not arithmetic on its parameters",
        "formats.several_buffers": "a tensor whose description has several buffers of values",
    },
    "In the reference interpreter": {
        "interpret.missing_parent": "an axis without its parent before it",
        "interpret.unsorted_lookup": "a coordinate looked up in an axis that is not sorted and "
        "unique",
        "interpret.vector_index": "a sparse buffer accessed at a vector of indices",
        "interpret.vector_condition": "`if_then_else` with a vector condition",
    },
}
"""What each code refuses, by where it is met; `*` stands for any word."""
BY_COMPILE = frozenset(
    (
        "parse.strides",
        "parse.elem_offset",
        "verify.buffer.siblings",
        "lower.unsorted_lookup",
        "lower.search",
        "lower.allocated_inside",
        "lower.let_above_block",
        "lower.unroll",
        "lower.unroll_size",
        "lower.vectorize",
        "lower.unmasked_lane",
        "lower.guarded_weight",
        "lower.flat_guards",
        "lower.meeting_inits",
        "lower.changing_size",
        "llvm.lanes",
        "llvm.weight",
        "backend.scalar_dtype",
    )
)
"""Codes that `gossamer.compile` meets with the program shown."""
WITHOUT_PROGRAM = {
    "backend.array_dtype": "A verified module has no such buffer; a signature from elsewhere may.",
    "backend.export": "What is refused is the code that another backend makes of a program.",
    "llvm.depth": "The program nests more than a thousand statements.",
}
"""Why there is no program to show."""
FOREIGN = ("llvm.toy",)
"""Codes of backends that tests bring along."""

Row = dict[str, str]


def rows() -> dict[str, Row]:
    """The recorded example of each code."""
    return {row["code"]: row for row in json.loads(EXAMPLES.read_text())}


def patterns() -> tuple[str, ...]:
    """Every code that the page has an entry for, as a pattern."""
    return tuple(code for section in SECTIONS.values() for code in section)


def page() -> str:
    """The whole document."""
    known = {code: row for code, row in rows().items() if code not in FOREIGN}
    lines = ["# What is refused by name\n", NOTE, "", INTRODUCTION, ""]
    for title, section in SECTIONS.items():
        lines += [f"## {title}\n", "| code | what |", "|---|---|"]
        lines += [f"| `{code}` | {what} |" for code, what in section.items()]
        lines.append("")
        for pattern in section:
            for code in fnmatch.filter(known, pattern):
                lines += entry(known[code])
    return "\n".join(lines)


def entry(row: Row) -> Iterator[str]:
    """A code with its program and what is said about it."""
    yield f"### `{row['code']}`\n"
    program = "" if row["code"] in WITHOUT_PROGRAM else row["program"]
    if program:
        yield from ("```", program.rstrip("\n"), "```\n")
    else:
        yield f"{WITHOUT_PROGRAM[row['code']]}\n"
    if row["code"] in BY_COMPILE:
        yield "`gossamer.compile` says:\n"
    yield from (f"> {line}" for line in message(row).splitlines())
    yield ""


def message(row: Row) -> str:
    """The sentence and the hint of an error, without the text in which it was found."""
    sentence, _, _ = row["text"].partition(f" [{row['code']}]")
    return " ".join(sentence.split())


def without_entry(codes: Iterable[str]) -> list[str]:
    """The codes that the page should have an entry for, and does not; `*` in a code is any word."""
    listed = patterns()
    return [
        code
        for code in sorted(codes)
        if not any(fnmatch.fnmatch(code, found) or fnmatch.fnmatch(found, code) for found in listed)
    ]


if __name__ == "__main__":
    PAGE.write_text(page())
