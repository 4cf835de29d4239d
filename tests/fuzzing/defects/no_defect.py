"""Passes and primitives without a planted defect, each with the reason."""

from __future__ import annotations

_ON_REQUEST = (
    "It runs on request only, not in the compiler of random programs (`COMPILER`); its tests compare it with "
    "NumPy."
)
_COMPOSED = "It runs other passes; defects are planted in those."
_OF_DEVICES = (
    "It runs for targets with grids of threads; the interpreter of PTX runs programs for these."
)
_OF_THE_LANGUAGE = (
    "It is a pass of gossamer_ir, of which a second import would have other classes of nodes."
)

PASSES = {
    "extract_inspector": _ON_REQUEST,
    "use_inspector_results": _ON_REQUEST,
    "substitute_buffer": _ON_REQUEST,
    "remove_unused_args": _ON_REQUEST,
    "insert_index_array_checks": "It does nothing without an annotation of the entry, which is not drawn.",
    "lower_vscale": "It runs for targets without scalable vectors; programs with these are emulated at every "
    "vector length.",
    "split_vector_buffers": "It changes buffers of several scalable vectors only, which the programs drawn "
    "for defects do not have; those that are emulated at every vector length do.",
    "lower_math": "It runs before code generation, which has defects of its own.",
    "narrow_lanes": "It is hardly drawn: it changed 1 of 1,650 programs drawn for rules, and none of 3,000 "
    "of the later stages.",
    "load_windows": "It changes loops with the annotation `window`, which only the rule for short rows "
    "writes; random programs hardly have such rows.",
    "share_gathers": "It changes loops with the annotation `equal_indices`, which only the rule for rows "
    "with equal columns writes.",
    "lower_atomics": "None is known that is revealed: three defects of accumulating lanes changed none of "
    "3,000 programs of the later stages.",
    "unswitch_on_alignment": "Only the primitive `align` makes conditions on addresses; the schedules drawn "
    "for defects of passes do not apply it.",
    "pipeline_loops": _OF_DEVICES,
    "lower_cross_thread_reduction": _OF_DEVICES,
    "split_host_device": _OF_DEVICES,
    "verify_stores": "It changes nothing.",
    "merge_shared_memory": _OF_DEVICES,
    "insert_sync": _OF_DEVICES,
    "lower_to_flat": _COMPOSED,
    "lower_to_device": _COMPOSED,
    "bounds_check_flat": _COMPOSED,
    "simplify": _OF_THE_LANGUAGE,
    "declare_regions": _OF_THE_LANGUAGE,
}

_ANNOTATION = "It changes annotations only, which do not change results."
_SAMPLE = "It chooses a value and changes no program."
_UNSAFE = "It proves nothing, so it is not drawn."

PRIMITIVES = {
    "annotate": _ANNOTATION,
    "unannotate": _ANNOTATION,
    "store_nontemporal": _ANNOTATION,
    "pipeline": "It adds an annotation, which backends without asynchronous copies ignore.",
    "convert_lanes": "It is hardly drawn: few loops over vectors contain nothing else.",
    "unroll": "It only marks a loop; the compiler refuses one without a constant number of copies.",
    "hide_buffer_access": "It changes declared regions, which no proof or pass uses.",
    "set_block_filter": "It restricts look-ups, not what primitives do.",
    "unset_block_filter": "It restricts look-ups, not what primitives do.",
    "set_scope": "The interpreter and CPUs have one kind of memory, so that results do not depend on scopes.",
    "sample_categorical": _SAMPLE,
    "sample_perfect_tile": _SAMPLE,
    "sample_compute_location": _SAMPLE,
    "reverse_compute_inline": "None is known that is revealed: none of three dropped checks showed in "
    "80 sequences and 260 programs of the later stages.",
    "sparse_compute_at": "None is known that is revealed: each of three dropped checks showed in none of 80 "
    "sequences.",
    "transform_layout": "None is known that is revealed: three defects changed no result in 80 sequences and "
    "260 programs of the later stages.",
    "decompose_format": "It is not drawn in sequences, because the program takes other arrays afterward; "
    "`test_decomposed_programs.py` draws it.",
    "unsafe_match_to_alloc": _UNSAFE,
    "unsafe_parallel": _UNSAFE,
    "unsafe_reorder": _UNSAFE,
    "unsafe_set_dtype": _UNSAFE,
    "unsafe_vectorize": _UNSAFE,
}
