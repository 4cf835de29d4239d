"""Relational graph convolution and sparse convolution on a GPU, in the interpreter of PTX: one launch for the
edges of all relations, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

from examples import gathered_on_gpu, gathered_products, relational_convolution, sparse_convolution
from gossamer.compilation.pipeline import stage_texts
from gossamer_ir.script import parse_module
from tests.integration.gpu_programs import ARCHITECTURES, INTERPRETED, require_assembled

WIDTHS = (1, 2, 4)
SMALL_VOXELS = sparse_convolution.random_voxels(60, (5, 4, 4))
CASES = {
    "relations": (
        relational_convolution.random_inputs(4, 30, 25, 200, features=8, outputs=33),
        WIDTHS,
    ),
    "odd sizes": (
        relational_convolution.random_inputs(3, 33, 29, 90, features=7, outputs=5),
        (1, 3),
    ),
    "no edges": (relational_convolution.random_inputs(2, 9, 7, 0, features=8, outputs=8), WIDTHS),
    "no relations": (
        relational_convolution.random_inputs(0, 9, 7, 0, features=8, outputs=8),
        WIDTHS,
    ),
    "no rows": (relational_convolution.random_inputs(2, 0, 7, 0, features=8, outputs=8), WIDTHS),
    "convolution": (sparse_convolution.voxel_convolution(SMALL_VOXELS, (5, 12)), (1,)),
    "one voxel": (sparse_convolution.voxel_convolution(SMALL_VOXELS[:1], (3, 4)), (1,)),
    "no voxels": (sparse_convolution.voxel_convolution(SMALL_VOXELS[:0], (3, 4)), (1,)),
}


@pytest.mark.parametrize("name", CASES)
def test_products_are_those_of_the_relations_one_by_one(name):
    inputs, widths = CASES[name]
    result = gathered_on_gpu.prepare(inputs, widths, target=INTERPRETED)()
    bound = gathered_products.terms(inputs) * np.finfo(np.float32).eps
    bound *= gathered_products.magnitude(inputs)
    assert (np.abs(result - gathered_products.oracle(inputs)) <= bound).all()


def scheduled(widths):
    return gathered_on_gpu.schedule(widths, "cuda-mma-sp")


def test_all_relations_and_buckets_are_one_launch():
    schedule = scheduled(WIDTHS)
    text = stage_texts(schedule.module, target="cuda-mma-sp")["asm"]
    assert text.count(".entry") == 2
    assert schedule.names[0].endswith("_fused")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ptxas_assembles_both_launches(architecture, tmp_path):
    require_assembled(scheduled(WIDTHS).module, architecture, tmp_path)


def test_the_program_is_valid_for_any_widths():
    assert len(parse_module(gathered_on_gpu.script((1, 8, 64))).functions[0].body) == 4
