"""`docs/unsupported.md`: the errors for unsupported constructs, each with a program that raises it.

Messages and programs are those of `tests/golden/errors.json`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools import ROOT
from tools.generators.errors import ExampleRow, stored_examples

PAGE = ROOT / "docs/unsupported.md"
NOTE = "<!-- Generated from tests/golden/errors.json by tools/generators/unsupported.py. -->"
INTRODUCTION = """\
Constructs of the language that cannot be lowered yet raise an `UnsupportedError`. Its code is in this list,
its message names the construct, and its hint says what to do instead. Nothing is dropped or guessed. Tests
compare the codes with the source, and raise each error with the program shown.

Under "`gossamer.compile` raises" are the errors of `gossamer.compile`. The others are raised by a pass, a
backend, a reader of formats or the interpreter for the module shown, by a backend for a target that lacks
a feature, or by a call of a kernel."""
SECTIONS: dict[str, dict[str, str]] = {
    "Parser and verifier": {
        "parse.strides": "strides by which elements may overlap, and facts about buffers with strides. "
        "Nested strides become a buffer of padded or reordered dimensions, whose accesses are checked; "
        "other constant strides become a buffer of one dimension",
        "parse.elem_offset": "a buffer that begins before its array; `align` and `offset_factor` are "
        "accepted and have no effect",
        "verify.buffer.siblings": "a buffer with several varied axes of one parent, without the prefix "
        "sums of their products",
    },
    "Arithmetic": {
        "tensor.operator": "operators of a `SparseTensor` whose results have another pattern, such as sums "
        "and comparisons",
    },
    "Sums of products": {
        "einsum.co_iteration": "sparse operands of `einsum` of which none has all letters, as in a product "
        "of two sparse matrices",
        "einsum.diagonal": "a letter twice in the subscripts of the sparse operand that is iterated",
    },
    "Gradients": {
        "adjoint.expression": "an operation without a derivative, such as `floor` or a conversion to "
        "integers",
        "adjoint.init": "an init that is not that of one update in the body of its iteration, or runs "
        "again for an element",
        "adjoint.order": "elements that depend on others of the same buffer, and scratch memory that an "
        "iteration uses again",
        "adjoint.overwritten": "values that are lost: of a buffer that is overwritten in part, or read "
        "before it is written",
        "adjoint.reduction": "reductions by other reducers than sums, minima and maxima; the latter without "
        "a constant init",
        "adjoint.statement": "tuples of reducers and other statements than iterations, stores, lets and "
        "conditions",
    },
    "Lowering to the flat stage": {
        "lower.lower_iterations.unsorted_lookup": "an access that searches for a coordinate in an "
        "axis that is not sorted and unique",
        "lower.inspector.stage": "extracting the searches of a module that is not at the position or "
        "the loop stage",
        "lower.inspector.dtype": "storing search results in another dtype than int32 or int64",
        "lower.inspector.no_search": "extracting searches where none depends on index arrays only",
        "lower.inspector.marked_blocks": "blocks marked `preprocess` that depend on the rest of the "
        "program",
        "lower.substitute_buffer.unknown": "replacing a buffer that is not a parameter",
        "lower.substitute_buffer.written": "replacing a buffer that is written by an expression",
        "lower.substitute_buffer.search": "replacing a buffer that is searched by an expression",
        "lower.substitute_buffer.dimensions": "replacing a buffer with another number of dimensions",
        "lower.substitute_buffer.dtype": "replacing a buffer by an expression of another dtype",
        "lower.substitute_buffer.shape": "fixing the shape of a buffer where an extent is a "
        "different constant, or an expression that is not a single parameter",
        "lower.hoist_searches.depends_on_loop": "a search in a weight or in the condition of `while` "
        "that depends on the loop",
        "lower.lower_iterations.missing_parent": "an axis that varies or is compressed below a dense "
        "one that is iterated without its parent; an attached axis whose parent has a parent that is "
        "not iterated",
        "lower.lower_buffers.missing_offsets": "a buffer with several varied axes of one parent, "
        "without offsets, in a module that was not verified",
        "lower.lower_blocks.allocated_inside": "an `init` of a buffer that is allocated in a loop "
        "that feeds the reduction: the init runs before this loop",
        "lower.lower_blocks.let_above_block": "a let that reads what the function writes, between a "
        "reduction loop and its block with `init`",
        "lower.unroll_loops.extent": "an unrolled loop whose extent is not constant",
        "lower.unroll_loops.size": "an unrolled loop that would exceed the limit of code size",
        "lower.vectorize_loops.no_vector_form": "a statement or expression without a vector form",
        "lower.insert_bounds_checks.unmasked_lane": "an access that is the same in all lanes and in "
        "bounds only under a condition on the lane",
        "lower.insert_bounds_checks.unproved_weight": "a weight with a load that is not proved in "
        "bounds",
        "lower.bounds_check_flat.not_proved": "a flat module, passed as such, that has calls or "
        "atomic updates, and accesses that are not proved in bounds",
        "lower.lower_blocks.conflicting_inits": "a block with an init, several points of which may "
        "write one element, if a `while` repeats it, the size of the buffer "
        "is read from mutable memory, or the iterations run in parallel",
        "lower.insert_bounds_checks.changing_size": "a buffer whose size is read from what the "
        "program writes",
        "lower.lower_math.unsupported_call": "a math function in the weight of a parallel loop; `fma` "
        "of float64 on a CPU without it",
        "lower.lower_atomics.not_atomic": "a loop whose iterations share elements of a buffer that "
        "they also read, or write in another way",
    },
    "Code generation with LLVM": {
        "llvm.stage.*": "a module of another stage than flat",
        "llvm.block": "a node of an earlier stage, which the passes replace",
        "llvm.iteration": "a node of an earlier stage, which the passes replace",
        "llvm.search": "a node of an earlier stage, which the passes replace",
        "llvm.and": "an operation that the dtype of its operands does not have",
        "llvm.floordiv": "an operation that the dtype of its operands does not have",
        "llvm.floormod": "an operation that the dtype of its operands does not have",
        "llvm.call.*": "a function that the target has no instruction for and that was not "
        "lowered to arithmetic",
        "llvm.lanes": "a number of lanes, or a multiple of vscale, that is not 2, 4, 8, 16, 32 or 64",
        "llvm.scalable": "scalable vectors on a target without them",
        "llvm.scope.*": "a storage scope of GPUs; matrix registers on a target without them",
        "llvm.fragment.shape": "a buffer that does not consist of whole matrix registers",
        "llvm.fragment.registers": "more matrix registers than the target has",
        "llvm.fragment.access": "an access to matrix registers other than a whole row or an outer product",
        "llvm.streaming.call": "vscale outside of the parallel loop or launch with matrix registers",
        "llvm.streaming.allocate": "memory that is allocated in a function with matrix registers",
        "llvm.streaming.gather": "a gather or scatter of scalable vectors beside matrix registers",
        "llvm.for.*": "a loop that is still parallel, vectorized, unrolled, bound to threads or "
        "marked atomic",
        "llvm.barrier": "a barrier on a host",
        "llvm.if_then_else.vector": "`if_then_else` with a vector condition",
        "llvm.lane_reduce.*": "a reduction over lanes by an operation that floats do not have",
        "llvm.weight": "a weight that reads more values than a closure holds",
        "llvm.launch.threads": "a launch of a grid of threads",
        "llvm.launch.nested": "a launch outside the entry",
        "llvm.parallel_for.nested": "a parallel loop in a function other than the entry",
        "llvm.allocate.device": "memory on a device whose size is not a small constant",
        "llvm.shared": "shared memory of a block that is too large, or whose size is not constant",
        "llvm.warp_instruction": "annotations that do not describe an instruction of a warp",
        "llvm.threads": "a block whose threads are not a constant number from 1 to 1024",
        "llvm.depth": "a function that nests too deeply",
    },
    "Kernels for GPUs": {
        "cuda.cpp": "what is not written in CUDA C++ (`gossamer show --stage cuda`); PTX does not need it",
        "cuda.fragment.access": "accesses of a fragment other than products of whole ones, or loops that "
        "fill or store it",
        "cuda.fragment.instruction": "a product of fragments that the GPU has no matrix instruction for",
        "cuda.fragment.product": "a fragment that is not an operand of a product of whole fragments",
        "cuda.fragment.threads": "fragments in a loop over the lanes that hold them, or with too many lanes",
        "lower.split_host_device.extent": "a loop that is bound to threads, whose extent is not known at the "
        "launch",
        "lower.split_host_device.host": "a loop or a condition around kernels that reads an array",
        "lower.split_host_device.scope": "memory of a block or a thread that several kernels use",
        "lower.verify_stores.shared": "shared memory that is allocated in a loop over the threads of a block",
        "lower.verify_stores.reduction": "a store of several threads to one element that is not a reduction",
        "lower.verify_stores.condition": "a store to one element under a condition that may select several "
        "threads",
        "lower.verify_stores.not_proved": "a store of threads to elements that are not proved to differ",
        "lower.verify_stores.unordered": "a store and another access of threads, to elements that are not "
        "proved to differ, without a barrier between them",
        "lower.lower_cross_thread_reduction.barrier": "a reduction over threads of several warps where not "
        "all threads of a block get",
        "lower.insert_sync.grid": "a store outside of a loop that is bound to blocks",
        "lower.insert_sync.barrier": "barriers, and exchanges of values, where not all threads of a block "
        "get",
        "lower.insert_sync.wait": "a wait in a loop over threads for asynchronous copies that began "
        "before it, without a barrier after the wait",
    },
    "At run time": {
        "target.vscale": "scalable vectors on a target without them that has the option `vscale=none`",
        "plugin.undeclared": "a module that needs a capability that the backend did not declare",
        "backend.array_dtype": "an array parameter whose dtype NumPy does not have",
        "backend.scalar_dtype": "a scalar parameter that is a vector, or a float other than "
        "float32 and float64",
        "backend.size": "a shape that is not made of constants, parameters, elements of index "
        "arrays and integer arithmetic",
        "backend.export": "exporting a kernel whose code is not an ELF object file for a 64-bit "
        "little-endian machine",
        "backend.relation": "a declared relation at the loop stage that cannot be checked: `covers`, "
        "or a relation of index arrays of which one is not sorted",
        "format.inverse": "a conversion to a format whose map cannot be inverted, since it is not affine, or "
        "whose axes the map does not determine",
        "format.nesting": "a tensor in a format with an axis that varies in length after an axis that is not "
        "its ancestor",
        "format.size": "a size in a format description that is not arithmetic on its parameters",
        "format.value_buffers": "a tensor whose description has several buffers of values",
    },
    "Reference interpreter": {
        "interpret.missing_parent": "an axis without its parent before it",
        "interpret.unsorted_lookup": "a coordinate looked up in an axis that is not sorted and "
        "unique",
        "interpret.vector_index": "a sparse buffer accessed at a vector of indices",
        "interpret.vector_condition": "`if_then_else` with a vector condition",
    },
}
"""The construct that each code refuses, by the component that raises it; `*` stands for any word."""
BY_COMPILE = frozenset(
    (
        "parse.strides",
        "parse.elem_offset",
        "verify.buffer.siblings",
        "lower.lower_iterations.unsorted_lookup",
        "lower.hoist_searches.depends_on_loop",
        "lower.lower_blocks.allocated_inside",
        "lower.lower_blocks.let_above_block",
        "lower.unroll_loops.extent",
        "lower.unroll_loops.size",
        "lower.vectorize_loops.no_vector_form",
        "lower.insert_bounds_checks.unmasked_lane",
        "lower.insert_bounds_checks.unproved_weight",
        "lower.bounds_check_flat.not_proved",
        "lower.lower_blocks.conflicting_inits",
        "lower.insert_bounds_checks.changing_size",
        "llvm.lanes",
        "llvm.weight",
        "backend.scalar_dtype",
    )
)
"""The codes that `gossamer.compile` raises for the program shown."""
WITHOUT_PROGRAM = {
    "tensor.operator": "The error is about an expression of Python.",
    "einsum.co_iteration": "The error is about the operands of `gossamer.einsum`.",
    "einsum.diagonal": "The error is about the operands of `gossamer.einsum`.",
    "backend.array_dtype": "A verified module has no such buffer, but a signature that a caller made may.",
    "backend.export": "The error is about the code of another backend.",
    "llvm.depth": "The program has more than a thousand nested statements.",
}
"""The reasons why there is no program to show."""
FOREIGN = ("llvm.toy",)
"""The codes of backends that only tests define."""


def patterns() -> tuple[str, ...]:
    """Return the codes that the page lists, as patterns."""
    return tuple(code for section in SECTIONS.values() for code in section)


def files() -> dict[Path, str]:
    """Return the whole document."""
    examples = {code: row for code, row in stored_examples().items() if code not in FOREIGN}
    lines = ["# Unsupported constructs\n", NOTE, "", INTRODUCTION, ""]
    for title, section in SECTIONS.items():
        lines += [f"## {title}\n", "| code | construct |", "|---|---|"]
        lines += [f"| `{code}` | {what} |" for code, what in section.items()]
        lines.append("")
        for pattern in section:
            for code in fnmatch.filter(examples, pattern):
                lines += entry(examples[code])
    return {PAGE: "\n".join(lines)}


def entry(row: ExampleRow) -> Iterator[str]:
    """Yield the lines of an entry: the code, its program and its message."""
    yield f"### `{row['code']}`\n"
    program = "" if row["code"] in WITHOUT_PROGRAM else row["program"]
    if program:
        yield from ("```", program.rstrip("\n"), "```\n")
    else:
        yield f"{WITHOUT_PROGRAM[row['code']]}\n"
    if row["code"] in BY_COMPILE:
        yield "`gossamer.compile` raises:\n"
    yield from (f"> {line}" for line in message(row).splitlines())
    yield ""


def message(row: ExampleRow) -> str:
    """Return the message and the hint of an error, without the excerpt of the program."""
    sentence, _, _ = row["text"].partition(f" [{row['code']}]")
    return " ".join(sentence.split())


def without_entry(codes: Iterable[str]) -> list[str]:
    """Return the codes that the page does not list; `*` in a code stands for any word."""
    listed = patterns()
    return [
        code
        for code in sorted(codes)
        if not any(
            fnmatch.fnmatch(code, pattern) or fnmatch.fnmatch(pattern, code) for pattern in listed
        )
    ]
