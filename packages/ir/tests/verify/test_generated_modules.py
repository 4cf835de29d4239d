"""Generated modules are well typed; the verifier reports only violated semantic conditions."""

import pytest
from hypothesis import HealthCheck, given, settings
from module_strategies import STAGES, formats, modules

from gossamer_ir.interchange import serialization
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.traversal.equality import structural_equal, structural_hash
from gossamer_ir.verify import diagnostics
from gossamer_ir.verify.formats import diagnostics_of_format

pytestmark = pytest.mark.no_error_examples

SETTINGS = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
NOT_KEPT_BY_THE_GENERATOR = {
    "verify.store.index",
    "verify.copy.body",
    "verify.copy.scope",
    "verify.copy.size",
    "verify.atomic.shared",
    "verify.handle.alias",
    "verify.handle.conflict",
    "verify.thread.duplicate",
    "verify.thread.extent",
    "verify.flat.argument",
    "verify.flat.arguments",
    "verify.flat.pointer",
    "verify.flat.recursion",
    "verify.var.handle",
    "verify.init.reduction",
    "verify.iteration.attach",
    "verify.iteration.axis",
    "verify.iteration.init",
    "verify.iteration.conflict",
    "verify.iteration.parent",
    "verify.buffer.siblings",
}
NOT_KEPT_BY_FORMATS = {
    "verify.format.map",
    "verify.format.shape",
    "verify.buffer.siblings",
    "verify.stage.node",
}


@pytest.mark.parametrize("stage", STAGES)
def test_generated_modules_are_well_typed_and_survive_the_wire(stage):
    @SETTINGS
    @given(modules(stage))
    def check(module):
        assert {one.code for one in diagnostics(module)} <= NOT_KEPT_BY_THE_GENERATOR
        data = serialization.dumps(module)
        loaded = serialization.loads(data)
        assert loaded == module
        assert serialization.dumps(loaded) == data
        assert structural_equal(loaded, module)
        assert structural_hash(loaded) == structural_hash(module)

    check()


@SETTINGS
@given(formats())
def test_generated_formats_are_well_typed_and_survive_the_wire(description):
    assert {one.code for one in diagnostics_of_format(description)} <= NOT_KEPT_BY_FORMATS
    data = serialization.dumps_record(description)
    assert serialization.loads_record(data, FormatDescription) == description
