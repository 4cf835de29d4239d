"""The C header of an exported kernel; C99 and C++11."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gossamer_backend.artifact import Artifact
from gossamer_backend.export.spelling import (
    ExportedParameter,
    Spellings,
    element_type,
    exported_parameters,
    expr_text,
    extent_texts,
    fact_in_words,
    parameters_by_buffer,
    scalar_type_of,
)
from gossamer_ir.interchange.kernel_abi import (
    ABI_VERSION,
    INTERRUPTED,
    NOT_GUARDED,
    OK,
    OUT_OF_BOUNDS,
    OUT_OF_MEMORY,
    WORKSPACE_FIELDS,
)
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature

_FIELDS = "\n".join(f"    {field.in_c(field.name)};" for field in WORKSPACE_FIELDS)
_THREADS, _PARALLEL, *_ = (field.in_c(field.name) for field in WORKSPACE_FIELDS)

SHARED = f"""\
#if defined(GOSSAMER_ABI_VERSION) && GOSSAMER_ABI_VERSION != {ABI_VERSION}
#error "kernels of different versions of the gossamer ABI are included"
#endif
#ifndef GOSSAMER_ABI_VERSION
#define GOSSAMER_ABI_VERSION {ABI_VERSION}

#define GOSSAMER_OK {OK} /* the result is written */
#define GOSSAMER_OUT_OF_BOUNDS {OUT_OF_BOUNDS} /* an access would have been out of bounds */
#define GOSSAMER_OUT_OF_MEMORY {OUT_OF_MEMORY} /* a buffer could not be allocated */
#define GOSSAMER_INTERRUPTED {INTERRUPTED} /* `is_interrupted` asked it to stop */

/* Of one call at a time. `parallel` must call function(data) on up to `threads` threads, at least on
 * one, and return when all have returned: GOMP_parallel of libgomp does. NULL runs all work in the
 * calling thread. `failed_buffer` is set where the status is GOSSAMER_OUT_OF_BOUNDS. Each thread of a
 * long loop calls is_interrupted(&since) before each portion of a chunk, with a `since` of its own that is
 * 0 before the first: 1 stops the loop, 0 goes on, -1 makes the next portion longer, -2 halves it. NULL
 * never stops it. */
struct gossamer_workspace {{
{_FIELDS}
}};

/* The workspace of a call on so many threads, at least 1. */
static inline struct gossamer_workspace gossamer_workspace_of(
    {_THREADS},
    {_PARALLEL})
{{
    struct gossamer_workspace made;
    made.threads = threads;
    made.parallel = parallel;
    made.failed_buffer = {NOT_GUARDED};
    made.is_interrupted = 0;
    return made;
}}

/* The workspace of a call that stays in the calling thread. */
static inline struct gossamer_workspace gossamer_one_thread(void)
{{
    return gossamer_workspace_of(1, 0);
}}

/* What a status means, in words that live as long as the program. */
static inline const char *gossamer_status_text(int64_t status)
{{
    return status == GOSSAMER_OK ? "the result is written"
         : status == GOSSAMER_OUT_OF_BOUNDS ? "an access would have been out of bounds"
         : status == GOSSAMER_OUT_OF_MEMORY ? "a buffer could not be allocated"
         : status == GOSSAMER_INTERRUPTED ? "it was interrupted"
         : "an unknown status";
}}
#endif
"""
"""Declarations that the headers of all kernels share, under one include guard."""


def header_text(artifact: Artifact, *, symbol: str, requires: Sequence[str]) -> str:
    """Return the header that declares the kernel as `symbol`; `requires` are its undefined symbols.

    Parameters are not named in the declaration, so that no macro of the including file can expand in it.
    The comment beside each has the name.
    """
    guard = f"GOSSAMER_KERNEL_{symbol}_H"
    parts = [
        _block_comment(_description_lines(artifact, symbol, requires)),
        f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        SHARED,
        _declaration(artifact, symbol),
        _failed_buffer(artifact, symbol),
        "#ifdef __cplusplus\n}\n#endif\n",
        f"#endif /* {guard} */\n",
    ]
    return "\n".join(parts)


def _description_lines(artifact: Artifact, symbol: str, requires: Sequence[str]) -> Iterator[str]:
    names = parameters_by_buffer(artifact.signature)
    yield f"{symbol}: the kernel '{artifact.signature.entry}' of gossamer, ABI {ABI_VERSION}."
    yield f"Compiled for {artifact.target}"
    yield f"by {artifact.backend} {artifact.backend_version}."
    if cpu := artifact.metadatum("cpu"):
        yield f"It runs on CPUs that have all features of {cpu}."
    yield ""
    yield "All arrays belong to the caller. The kernel keeps no pointer when it returns and frees"
    yield "nothing that it was passed. Arrays are contiguous, row by row, and aligned for their"
    yield "elements; one that is written overlaps no other. Sizes are 64-bit integers and not negative."
    yield from _memory_lines(artifact.signature, names)
    yield "It keeps no state: several threads may call it at once, each with a workspace and output"
    yield "arrays of its own."
    facts = list(_fact_lines(artifact.signature.buffers, names))
    if facts:
        yield ""
        yield "The caller promises (nothing checks it here):"
        yield from facts
    yield ""
    yield f"Takes from other libraries: {', '.join(requires) or 'nothing'}."


def _memory_lines(signature: Signature, names: Spellings) -> Iterator[str]:
    """Yield in which memory the arrays are, and the scratch memory that the kernel needs."""
    spaces = " and ".join(sorted({param.space for param in signature.buffers})) or "host"
    if signature.scratch is None:
        yield f"Arrays are in {spaces} memory. What else the kernel needs, it allocates and frees itself."
        return
    size = expr_text(signature.scratch, names)
    yield f"Arrays are in {spaces} memory. Each call needs {size} bytes of scratch memory there."


def _fact_lines(params: Sequence[BufferParam], names: Spellings) -> Iterator[str]:
    for param in params:
        for fact in param.facts:
            yield f"  {param.name}: {fact_in_words(fact, names)}"


def _declaration(artifact: Artifact, symbol: str) -> str:
    signature, names = artifact.signature, parameters_by_buffer(artifact.signature)
    rows = [_parameter_declaration(param, names) for param in exported_parameters(signature)]
    rows.append(("struct gossamer_workspace *", "workspace"))
    kinds = [f"{kind}," for kind, _ in rows[:-1]] + [f"{rows[-1][0]});"]
    width = max(map(len, kinds))
    lines = [
        f"    {kind:<{width}} /* {_without_comment_ends(note)} */"
        for kind, (_, note) in zip(kinds, rows, strict=True)
    ]
    opening = "/* Returns GOSSAMER_OK or why not; then what it writes is unspecified. */"
    return "\n".join([opening, f"int64_t {symbol}(", *lines, ""])


def _parameter_declaration(param: ExportedParameter, names: Spellings) -> tuple[str, str]:
    """Return the C type of a parameter and the comment beside it."""
    if isinstance(param, ScalarParam):
        widened = f", a {param.dtype}" if param.dtype not in ("int64", "float32", "float64") else ""
        return scalar_type_of(param.dtype), f"{param.name}{widened}"
    constant = "" if param.is_written else "const "
    extents = ", ".join(extent_texts(param, names))
    use = {(True, True): "read and written", (True, False): "read", (False, True): "written"}
    said = use.get((param.is_read, param.is_written), "not used")
    return f"{constant}{element_type(param.dtype)} *", f"{param.name}: shape ({extents}), {said}"


def _failed_buffer(artifact: Artifact, symbol: str) -> str:
    """Return a C function that returns the name of the buffer whose bounds check failed."""
    cases = "".join(
        f'    if (workspace->failed_buffer == {number}) return "{name}";\n'
        for number, name in enumerate(artifact.bounds_checked_buffers)
    )
    # Compilers warn of a parameter that is not used, as it is if no buffer has a bounds check.
    return (
        "/* The buffer that would have been accessed out of bounds, 0 where there is none. */\n"
        f"static inline const char *{symbol}_failed_buffer(\n"
        "    const struct gossamer_workspace *workspace)\n{\n"
        f"{cases or '    (void)workspace;' + chr(10)}"
        "    return 0;\n}\n"
    )


def _block_comment(lines: Iterator[str]) -> str:
    return "\n".join(
        ["/*", *(f" * {_without_comment_ends(line)}".rstrip() for line in lines), " */"]
    )


def _without_comment_ends(text: str) -> str:
    """Return the text without sequences that would end a C comment."""
    return text.replace("*/", "* /").replace("/*", "/ *")
