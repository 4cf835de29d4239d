"""The files that treat some types of statements or expressions apart, and are right for a new type without a
change, by the reason."""

from __future__ import annotations

STATEMENTS: dict[str, tuple[str, ...]] = {
    "A pass that changes loops or conditions leaves any other statement as it is, or changes its bodies": (
        "gossamer_lower.loops.peel_last_iteration",
        "gossamer_lower.loops.unswitch_on_alignment",
        "gossamer_lower.loops.unswitch_uniform_conditions",
        "gossamer_lower.loops.helpers.cse_unrolled",
        "gossamer_lower.search.merge_searches",
    ),
    "What only some statements have is lowered; the bodies of any other statement are visited": (
        "gossamer_lower.blocks.lower_blocks",
        "gossamer_lower.memory.hoist_allocations",
        "gossamer_lower.vector.vectorize_loops",
    ),
    "Searches in the bodies of a statement that may not run, or may repeat them, stay": (
        "gossamer_lower.inspector.helpers.search_results",
    ),
    "Calls are computed before any other statement; a condition that is evaluated again is refused": (
        "gossamer_lower.math.helpers.statement_lowering",
    ),
    "Any other statement around a block with an init is refused": (
        "gossamer_ir.interpret.statements.inits",
        "gossamer_ir.interpret.translator",
    ),
    "Only loops and conditions belong to the nest of a block; any other statement ends it": (
        "gossamer_schedule.nests.block_nest",
    ),
    "Any other statement gets a condition around it": (
        "gossamer_schedule.predicates.bounded_body",
    ),
    "Any other access of the buffer is refused": (
        "gossamer_schedule.primitives.buffers.cache_inplace",
    ),
    "The types of the rewriting have nothing in common; any other statement stays": (
        "gossamer_schedule.primitives.buffers.rolling_buffer",
    ),
    "Expressions of any other statement count as evaluations": ("gossamer_schedule.staging.loads",),
    "The nests that conversions build have no other statements": (
        "gossamer_formats.conversion.compiled.programs.loop_nest",
        "gossamer_formats.conversion.compiled.programs.vector_loop",
    ),
}

EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "Nothing is concluded from an expression in any other form: it is an atom with a dtype": (
        "gossamer_ir.analysis.array_extents",
        "gossamer_ir.analysis.nondecreasing",
        "gossamer_ir.analysis.overflow",
        "gossamer_ir.analysis.symbolic_bounds",
        "gossamer_ir.analysis.value_bounds",
        "gossamer_ir.arith.affine",
        "gossamer_ir.arith.atom_inequalities",
        "gossamer_ir.arith.inequalities",
        "gossamer_ir.arith.nonaffine_bounds",
        "gossamer_ir.arith.prover",
        "gossamer_ir.dependence.disjointness",
        "gossamer_ir.transform.decomposition.coverage",
        "gossamer_ir.transform.decomposition.slots",
        "gossamer_lower.axes.fiber_positions",
        "gossamer_lower.buffers.helpers.condition_removal",
        "gossamer_lower.buffers.helpers.storage_layout",
        "gossamer_lower.iterations.helpers.fused_axes",
        "gossamer_lower.iterations.helpers.iterator_kinds",
        "gossamer_schedule.nests.split_variable",
        "gossamer_schedule.rules.analysis.outputs",
        "gossamer_schedule.rules.analysis.own_rows",
        "gossamer_schedule.rules.patterns.block_reduction",
        "gossamer_schedule.rules.patterns.tiled_reduction",
        "gossamer_schedule.primitives.loops.loop_version",
    ),
    "An expression in any other form is not optimized": (
        "gossamer_llvm.memory.addresses",
        "gossamer_llvm.memory.lane_loads",
        "gossamer_llvm.values.masks",
        "gossamer_lower.math.helpers.term_builder",
        "gossamer_lower.loops.unswitch_on_alignment",
        "gossamer_lower.search.expand_search",
        "gossamer_lower.search.merge_searches",
        "gossamer_lower.vector.combine_lane_reductions",
        "gossamer_lower.vector.eliminate_redundant_masks",
        "gossamer_lower.vector.load_windows",
        "gossamer_lower.vector.narrow_lanes",
        "gossamer_formats.conversion.compiled.axes.coordinates",
        "gossamer_formats.conversion.compiled.axes.marked_fibers",
        "gossamer_formats.conversion.compiled.axes.places",
        "gossamer_formats.conversion.maps.contents",
    ),
    "Operands are visited in any other expression": (
        "gossamer_lower.math.helpers.call_lowering",
        "gossamer_llvm.parallel.load_balancing",
        "gossamer_schedule.tensorization.unify",
    ),
    "An expression in any other form is refused": (
        "gossamer_ir.arith.evaluate_integer",
        "gossamer_formats.conversion.maps.array_expressions",
        "gossamer_schedule.primitives.blocks.decompose_padding",
    ),
    "Only literals and declared values change their dtype": (
        "gossamer_ir.script.parser.arguments.coercion",
        "gossamer_ir.script.parser.expressions.expression_readers",
    ),
    "The types without operands, which walks may skip": ("gossamer_ir.traversal.fields",),
}
