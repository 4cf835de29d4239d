"""Every pass is registered; a pass that does not accept a module raises an error that names it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import get_type_hints

import pytest
from msgspec.structs import replace

import gossamer_lower
from gossamer_ir.analysis.regions import declare_regions
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_ir.interchange.records import LOWERING_PASSES
from gossamer_ir.nodes import STAGES
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_lower.constructs import REMOVED_CONSTRUCTS
from gossamer_lower.lowering_pass import listed_records, record_of
from gossamer_lower.pass_order import require_order
from gossamer_lower.passes import ORDERED_PASSES, PASS_RECORDS
from gossamer_lower.passes_by_name import ARGUMENT_TYPES, PASSES, apply_pass
from gossamer_lower.pipelines.flat_passes import FLAT_PASSES
from gossamer_lower.pipelines.lower_to_flat import lower_to_flat
from gossamer_testkit.examples import program

COORDINATE = parse_module("""
@T.prim_func
def spmv(a: T.handle, x: T.handle, y: T.handle, indptr: T.handle, indices: T.handle, m: T.int64,
         n: T.int64, nnz: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    K = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (K,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
""")

OWN = [name for name in PASSES if name not in ("simplify", "declare_regions")]
"""The passes of this package; the others are those of gossamer-ir."""
SHARED = ("axes", "bounds_checks", "pipelines", "statements")
"""The folders whose modules passes of several folders use."""


def modules_of_the_package():
    for info in pkgutil.walk_packages(gossamer_lower.__path__, "gossamer_lower."):
        yield importlib.import_module(info.name)


def test_every_pass_has_a_file_of_tests_in_the_folder_of_its_kind():
    for function in ORDERED_PASSES:
        package, *folders, name = function.__module__.split(".")
        if package == "gossamer_lower":
            assert Path(__file__).parent.joinpath(*folders, f"test_{name}.py").exists(), name


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_a_pass_lowers_each_stage_to_the_next_one(stage):
    record = PASSES[LOWERING_PASSES[stage]]
    assert (record.takes, record.gives) == ((stage,), STAGES[STAGES.index(stage) + 1])


def test_every_pass_of_the_package_is_listed_once():
    """A pass is a function with the decorator in a file of its name."""
    defined = {
        name: function
        for home in modules_of_the_package()
        for name, function in vars(home).items()
        if record_of(function) is not None and function.__module__ == home.__name__
    }
    assert all(function.__module__.endswith(f".{name}") for name, function in defined.items())
    assert {name: record.function for name, record in PASSES.items()} == {
        **defined,
        "simplify": simplify,
        "declare_regions": declare_regions,
    }


def test_the_records_of_the_listed_passes_are_in_their_order():
    assert [record.function for record in PASS_RECORDS] == [*ORDERED_PASSES]


def test_a_function_without_the_decorator_is_refused_in_the_list():
    def undecorated(module):
        return module

    message = "'undecorated' is listed as a pass, but has no decorator `lowering_pass`"
    with pytest.raises(InternalError, match=message):
        listed_records([*ORDERED_PASSES, undecorated])


def imported_late(node):
    """Return the file of a math function, which the table of functions imports when it is called."""
    match node:
        case ast.Call(func=ast.Name("_function"), args=[ast.Constant(family), _]):
            return {f"gossamer_lower.math.functions.{family}"}
    return set()


def test_the_modules_of_a_folder_of_passes_are_private_to_it():
    """Import contracts would need one for each folder: a wildcard in `protected_modules` is not bound to the
    one in `allowed_importers`."""
    private, imported = set(), set()
    for home in modules_of_the_package():
        _, *folders, name = home.__name__.split(".")
        if (
            folders
            and folders[0] not in SHARED
            and name not in PASSES
            and "__path__" not in vars(home)
        ):
            private.add(home.__name__)
    for home in modules_of_the_package():
        for node in ast.walk(ast.parse(inspect.getsource(home))):
            imported |= imported_late(node)
            if isinstance(node, ast.ImportFrom):
                for name in {
                    node.module,
                    *(f"{node.module}.{alias.name}" for alias in node.names),
                } & private:
                    assert name.split(".")[1] == home.__name__.split(".")[1], home.__name__
                    imported.add(name)
    assert imported == private, "a module that no pass of its folder uses"


def test_the_file_of_a_pass_exports_only_the_pass():
    """Functions that two passes need are in a module of their own."""
    homes = {getattr(gossamer_lower, name).__module__: name for name in OWN}
    for home in homes:
        for node in ast.walk(ast.parse(inspect.getsource(importlib.import_module(home)))):
            if isinstance(node, ast.ImportFrom) and node.module in homes:
                assert [alias.name for alias in node.names] == [homes[node.module]], home


def test_a_function_of_modules_that_is_named_as_its_file_is_a_pass():
    """Detects a pass without the decorator."""
    for home in modules_of_the_package():
        function = getattr(home, home.__name__.rpartition(".")[2], None)
        if inspect.isfunction(function) and "module" in inspect.signature(function).parameters:
            assert record_of(function) is not None


def test_every_pass_can_be_imported_from_the_package():
    assert set(gossamer_lower.__all__) == {*OWN, "DEVICE_PASSES", "FLAT_PASSES"}
    for name in OWN:
        assert record_of(getattr(gossamer_lower, name)) is PASSES[name]


@pytest.mark.parametrize("name", PASSES)
def test_each_argument_of_a_pass_can_be_read(name):
    function = PASSES[name].function
    types = get_type_hints(function)
    _, *parameters = inspect.signature(function).parameters
    assert {types[parameter] for parameter in parameters} <= ARGUMENT_TYPES.keys()


def test_the_constructs_that_are_removed_are_those_that_passes_remove():
    removed = {construct for record in PASS_RECORDS for construct in record.removes}
    assert removed == {*REMOVED_CONSTRUCTS}


def test_the_pipeline_ends_at_the_flat_stage():
    assert record_of(FLAT_PASSES[-1]).gives == "flat"


MISPLACED = {
    "before one that it must follow": (
        "narrow_lanes", 0,
        "'narrow_lanes' is listed before 'eliminate_redundant_masks', but must run after it: only masks",
    ),
    "after one that it must precede": (
        "unswitch_uniform_conditions", 26,
        "is listed after 'insert_bounds_checks', but must run before it: an access that all lanes share",
    ),
    "after one that takes the stage that it gives": (
        "lower_buffers", 9, "'lower_vscale' takes a module of the loop or flat stage, but 'lower_iter",
    ),
    "before the pass that removes a construct": (
        "unswitch_uniform_conditions", 2, "takes a module without blocks, but no pass that is listed before",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "place", "message"), MISPLACED.values(), ids=MISPLACED)
def test_a_pass_at_a_wrong_place_of_the_list_is_refused_with_the_reason(name, place, message):
    moved = [record for record in PASS_RECORDS if record.name != name]
    moved.insert(place, PASSES[name])
    with pytest.raises(InternalError, match=message):
        require_order(moved)


def test_a_pass_that_could_be_listed_anywhere_is_refused():
    unplaced = replace(
        PASSES["load_windows"], name="unplaced", before={}, after={}, removes=(), takes=("loop",)
    )
    at = [record.name for record in PASS_RECORDS].index("load_windows")
    records = [*PASS_RECORDS[:at], unplaced, *PASS_RECORDS[at:]]
    with pytest.raises(InternalError, match="'unplaced' declares neither `after` nor `before`"):
        require_order(records)
    require_order([*records[:at], replace(unplaced, pipeline=None), *records[at + 1 :]])
    require_order(
        [
            *records[:at],
            replace(unplaced, after={"unroll_loops": "it says why"}),
            *records[at + 1 :],
        ]
    )


def test_a_pass_is_ordered_by_names_of_passes():
    named = {other for record in PASS_RECORDS for other in (*record.after, *record.before)}
    assert named <= PASSES.keys()


POSITION = apply_pass("lower_iterations", COORDINATE)
NESTED = apply_pass("lower_blocks", apply_pass("lower_buffers", POSITION))
MODULES = {
    "coordinate": COORDINATE,
    "position": POSITION,
    "loop": NESTED,
    "flat": apply_pass("lower_to_flat", NESTED),
}
ARGUMENTS = {
    "lower_math": {"instructions": ["sqrt"]},
    "lower_vscale": {"vscale": 4},
    "substitute_buffer": {"buffer": "J_indices", "indices": ["p"], "value": "n - 1"},
}
SEARCHED = program("for i in T.serial(n): Y[T.search('lower', P, begin=0, end=n, value=i)] = 1")
SEARCHING = {"loop": SEARCHED, "position": replace(SEARCHED, stage="position")}


TAKEN = [
    (name, stage) for name, pass_record in PASSES.items() for stage in pass_record.takes or MODULES
]


@pytest.mark.parametrize(("name", "stage"), TAKEN)
def test_a_pass_of_the_table_takes_and_gives_what_it_says(name, stage):
    module = SEARCHING[stage] if "inspector" in name else MODULES[stage]
    result = verify(apply_pass(name, module, arguments=ARGUMENTS.get(name)))
    assert result.stage == (PASSES[name].gives or module.stage)


LOOP = program("""
for i in T.serial(n):
    with T.block("b"):
        vi = T.axis.spatial(n, i)
        Y[vi] = X[vi]
""")
BARE = program("for i in T.serial(n): Y[i] = X[i]")
REFUSED = {
    "a name that is none": ("lower_everything", BARE, {}, "pass.name"),
    "a module of an earlier stage": ("lower_blocks", COORDINATE, {}, "pass.stage"),
    "a module of a later stage": ("lower_iterations", BARE, {}, "pass.stage"),
    "blocks that are left": ("insert_bounds_checks", LOOP, {}, "pass.order"),
    "an argument that is none": ("lower_blocks", BARE, {"loop": "i"}, "pass.arguments"),
    "an argument that is missing": ("lower_math", apply_pass("lower_to_flat", BARE), {}, "pass.arguments"),
    "an argument of a wrong type": (
        "lower_math", apply_pass("lower_to_flat", BARE), {"instructions": 3}, "pass.arguments",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "module", "arguments", "code"), REFUSED.values(), ids=REFUSED)
def test_what_a_pass_does_not_take_is_refused_by_name(name, module, arguments, code):
    with pytest.raises(ArgumentError) as caught:
        apply_pass(name, module, arguments=arguments)
    assert caught.value.code == code


def test_each_pass_to_the_flat_stage_can_be_verified():
    assert lower_to_flat(LOOP, verify_each=True) == lower_to_flat(LOOP)


def test_a_pass_that_breaks_its_promise_is_named():
    with pytest.raises(InternalError, match=r"pass 'lower_blocks' .* still holds blocks"):
        PASSES["lower_blocks"].require_postconditions(LOOP)
    with pytest.raises(InternalError, match=r"pass 'lower_to_flat' .* of the loop stage"):
        PASSES["lower_to_flat"].require_postconditions(LOOP)
    broken = program("for i in T.serial(n): Y[i] = X[i]")
    function = replace(broken.functions[0], buffers=broken.functions[0].buffers[:1])
    with pytest.raises(InternalError, match=r"pass 'lower_blocks' .* \[verify\."):
        PASSES["lower_blocks"].require_postconditions(replace(broken, functions=(function,)))
