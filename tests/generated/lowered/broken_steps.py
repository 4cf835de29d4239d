"""Primitives with one check dropped each, which programs of the position and loop stage show."""

from __future__ import annotations

from tests.generated.broken_primitives import Defect

DEFECTS = (
    Defect(
        "a value is computed after what it reads was written",
        of="compute_inline", home="primitives.compute_inline",
        line="    _require_lasting(site)\n", instead="",
    ),
    Defect(
        "a value is read before the block that makes it",
        of="compute_inline", home="primitives.compute_inline",
        line="    _require_behind(site, store)\n", instead="",
    ),
    Defect(
        "an update is made in each iteration of a loop",
        of="compute_at", home="primitives.compute_at",
        line="    _require_own_updates(site, top, target, made=made)\n", instead="",
    ),
    Defect(
        "values from an earlier iteration are lost",
        of="compute_at", home="primitives.compute_at",
        line="    require_made_again(site, own, target, made=made, primitive=_NAME)\n", instead="",
    ),
    Defect(
        "a block moves past a write of what it reads",
        of="compute_at", home="primitives.compute_at",
        line="    _require_free_way(site, top, own=own)\n", instead="",
    ),
    Defect(
        "an extent that the loop changes is evaluated again",
        of="split", home="primitives.split",
        line="        _require_unchanged(site)\n", instead="        pass\n",
    ),
    Defect(
        "a block moves past others that touch its buffer",
        of="reverse_compute_inline", home="primitives.reverse_compute_inline",
        line="    _require_free_way(site, maker, module=module, between=load.buffer)\n", instead="",
    ),
    Defect(
        "elements that meet are stored in another order",
        of="reverse_compute_inline", home="primitives.reverse_compute_inline",
        line="    require_distinct(site, store.buffer, primitive=_NAME)\n", instead="",
    ),
    Defect(
        "elements that the block does not store to are published",
        of="cache_write", home="primitives.cache_write",
        line="    is_loading = _require_initialised(site, element)\n", instead="    is_loading = False\n",
    ),
    Defect(
        "elements that the block does not store to are published by their iterators",
        of="reindex_cache_write", home="primitives.reindex_cache_write",
        line="        require_distinct(scattering, buffer, primitive=_NAME)\n", instead="        pass\n",
    ),
    Defect(
        "the parts of a reduction start where others do",
        of="rfactor", home="primitives.rfactor",
        line="    _require_one_start(site, top, element, module=module)\n", instead="",
    ),
    Defect(
        "statements that depend on each other are in two loops",
        of="fission", home="primitives.fission",
        line="        _require_independent(before, parts[at], site, module=module)\n", instead="",
    ),
    Defect(
        "each loop of several evaluates what the loops before it change",
        of="fission", home="primitives.fission",
        line="    _require_unchanged(site, module=module)\n", instead="",
    ),
    Defect(
        "the parts of a loop evaluate what the parts before change",
        of="loop_partition", home="primitives.loop_partition",
        line="    _require_unchanged(site, cuts, module=module)\n", instead="",
    ),
    Defect(
        "an init is made once for several iterations that need it",
        of="decompose_reduction", home="primitives.decompose_reduction",
        line="    _require_one_init(nest, asked)\n", instead="",
    ),
    Defect(
        "a loop of lanes depends on what the lanes before stored",
        of="vectorize", home="primitives.vectorize",
        line="        require(site, module, op)\n", instead="        pass\n",
    ),
    Defect(
        "iterations in another order change what others read",
        of="reorder", home="primitives.reorder",
        line="    body = require(top, chain, moved, module)\n",
        instead="    body = chain[-1].body\n",
    ),
)  # fmt: skip
