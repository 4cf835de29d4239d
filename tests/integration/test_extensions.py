"""Plugins without a backend, which extend `generic-cpu`: rules, passes, primitives and intrinsics."""

from __future__ import annotations

import importlib
import sys
import tomllib

import numpy as np
import pytest
from scipy.sparse import csr_array

import gossamer as gs
from gossamer.cli import main
from gossamer.compilation import build_kernels
from gossamer.compilation.build_kernels import KERNELS
from gossamer.compilation.pipeline import next_stage, stage_texts
from gossamer.targets import resolve_target
from gossamer.targets.resolve_target import extension_points
from gossamer_backend import PluginWarning, Registry
from gossamer_ir.errors import InternalError, PluginError
from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module, print_module
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_testkit.examples import SCALE
from tests.doctests.documents import PYTHON

IMPORTS = """
from gossamer_backend.plugin_api import Pass, hookimpl
from gossamer_ir.interchange.records import Decision, Intrinsic, Schedule, Step
from gossamer_schedule import unroll
from gossamer_schedule.plugin_api import LOOP_STAGES, change_of, plugin_primitive
"""
PASS = """
@hookimpl
def gossamer_passes():
    return [{}]
"""
RULE = """
@hookimpl
def gossamer_schedules():
    return [lambda module, machine, stats: {}]
"""
PRIMITIVE = """
@plugin_primitive("unrolling", stages=LOOP_STAGES)
def unroll_it(root, loop: str, *, function: str | None = None):
    return change_of(unroll(root.module, loop, function=function), root)


@hookimpl
def gossamer_primitives():
    return [unroll_it]
"""
BLOCK = """
@T.prim_func
def f(y: T.handle) -> None:
    Y = T.match_buffer(y, (4,), "float32")
    for i in T.serial(4):
        with T.block("again"):
            vi = T.axis.spatial(4, i)
            Y[vi] = 1.0
"""


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """An empty cache, and no kernels in memory."""
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    forget(monkeypatch)


def forget(monkeypatch):
    """Let gossamer look for plugins again, as a new process does."""
    points = resolve_target.extension_points
    monkeypatch.setattr(resolve_target, "registry", Registry(extension_points=points))
    monkeypatch.setattr("gossamer.cli.commands.backends.registry", resolve_target.registry)
    KERNELS.forget()
    build_kernels._extension_versions.cache_clear()


@pytest.fixture
def install(tmp_path, monkeypatch):
    """install(name, text, points) installs a distribution of one module, which extends backends."""
    modules = []

    def add(name, text, points, *, version="1.0"):
        module, folder = name.replace("-", "_"), tmp_path / f"site-{version}"
        info = folder / f"{module}-{version}.dist-info"
        info.mkdir(parents=True)
        (folder / f"{module}.py").write_text(text)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = [f"{point} = {value}\n" for point, value in points.items()]
        (info / "entry_points.txt").write_text("".join(["[gossamer.extensions]\n", *lines]))
        monkeypatch.syspath_prepend(str(folder))
        importlib.invalidate_caches()
        modules.append(module)
        forget(monkeypatch)

    yield add
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def doubling(install, root):
    """Installs the plugin of `tests/plugins/doubling`."""
    folder = root / "tests/plugins/doubling"
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    text = (folder / "acme_doubling.py").read_text()
    install(project["name"], text, project["entry-points"]["gossamer.extensions"])


def doubled(kernel, size=21):
    x, y = np.arange(size, dtype=np.float32), np.empty(size, np.float32)
    kernel(x, y)
    return (y == 2 * x).all()


def test_the_document_shows_the_plugin(root):
    page = (root / "docs/plugins.md").read_text()
    folder = root / "tests/plugins/doubling"
    assert (folder / "acme_doubling.py").read_text() in PYTHON.findall(page)
    assert (folder / "pyproject.toml").read_text().partition("[project.entry")[2] in page


@pytest.mark.usefixtures("doubling")
def test_its_rule_its_intrinsic_and_its_pass_are_used():
    report = gs.explain(SCALE)
    assert (report.rule, [step.op for step in report.schedule.loop]) == (
        "double_by_intrinsic",
        ["split", "tensorize"],
    )
    texts = stage_texts(SCALE)
    assert '"intrinsic": "double_float32x8@' in texts["loop"]
    assert "X[T.ramp(i_0 * 8, 1, 8)] + X[T.ramp(i_0 * 8, 1, 8)]" in texts["flat"]
    assert "* 2.0" not in texts["flat"]
    assert doubled(gs.compile(SCALE))


@pytest.mark.usefixtures("doubling")
def test_builders_have_its_intrinsics():
    builder = gs.schedule(SCALE).split("i", factors=(None, 8))
    builder.tensorize("i_1", intrinsic="double_float32x8")
    assert doubled(gs.compile(SCALE, schedule=builder))


@pytest.mark.usefixtures("doubling")
def test_other_programs_and_backends_are_as_before():
    assert gs.explain("spmv").rule == "row_spmv"
    assert [
        extension.name for extension in resolve_target.registry.plugin("generic-cpu").extensions
    ] == [
        "doubling",
        "generic-cpu",
    ]


def test_a_kernel_made_without_it_is_not_used_with_it(install, root, monkeypatch):
    flat = 'Pass("zero", "flat", lambda module: module)'
    before = KERNELS.build_module(SCALE)
    assert KERNELS.build_module(SCALE).key == before.key
    install("acme-passes", IMPORTS + PASS.format(flat), {"generic-cpu.acme": "acme_passes"})
    installed = KERNELS.build_module(SCALE)
    assert installed.key != before.key
    forget(monkeypatch)
    assert KERNELS.build_module(SCALE).key == installed.key
    install("acme-passes", IMPORTS, {"generic-cpu.acme": "acme_passes"}, version="2.0")
    assert KERNELS.build_module(SCALE).key not in (before.key, installed.key)


def test_a_cached_kernel_is_found_without_importing_extensions(doubling, monkeypatch):
    del doubling
    x = np.ones(3, np.float32)
    for _ in range(2):  # compiled, then loaded
        sys.modules.pop("acme_doubling", None)
        forget(monkeypatch)
        gs.spmv.forget()
        gs.spmv(csr_array(np.eye(3, dtype=np.float32)), x)
    assert "acme_doubling" not in sys.modules


def test_rules_are_asked_in_the_order_of_the_names_of_plugins(install):
    for name in ("zebra", "ant"):
        report = f'Schedule(loop=(Step("annotate", {{"loop": "i", "key": "{name}", "value": 1}}),))'
        install(f"acme-{name}", IMPORTS + RULE.format(report), {f"generic-cpu.{name}": f"acme_{name}"},
                version=f"1.{len(name)}")  # fmt: skip
    report = gs.explain(SCALE)
    assert report.rule == "ant"
    assert report.pattern == "one that the plugin 'ant' has a rule for"


def test_passes_run_at_each_extension_point(install):
    passes = [
        f'Pass("see", "{stage}", lambda module: SEEN.append("{point}") or module, at="{point}")'
        for point, stage in extension_points().items()
    ]
    text = IMPORTS + "SEEN = []\n" + PASS.format(", ".join(passes))
    install("acme-seeing", text, {"generic-cpu.seeing": "acme_seeing"})
    gs.compile(SCALE)
    seen = importlib.import_module("acme_seeing").SEEN
    assert seen == [*extension_points()]


@lowering_pass(takes=("loop",), removes=("blocks",))
def broken(module):
    return module


def test_passes_between_those_of_extensions_can_be_verified(install, monkeypatch):
    keep = PASS.format('Pass("keep", "loop", lambda module: module, at="after lower_blocks")')
    install("acme-keeping", IMPORTS + keep, {"generic-cpu.keeping": "acme_keeping"})
    plugin, module = resolve_target.plugin_of(Target.parse("generic-cpu")), parse_module(BLOCK)
    assert next_stage(module, plugin=plugin, verify_each=True).stage == "flat"
    home = importlib.import_module("gossamer_lower.blocks.lower_blocks")
    monkeypatch.setattr(home, "lower_blocks", broken)
    with pytest.raises(InternalError, match=r"pass 'broken' .* still holds blocks"):
        next_stage(module, plugin=plugin, verify_each=True)


def test_opt_lists_and_applies_what_extensions_have(doubling, install, capsys, tmp_path):
    del doubling
    install(
        "acme-unrolling",
        IMPORTS + PRIMITIVE,
        {"generic-cpu.unrolling": "acme_unrolling"},
        version="3",
    )
    assert main(["opt", "--list"]) == 0
    listed = capsys.readouterr().out
    assert "  doubling.double_by_addition       loop, before vectorize_loops\n" in listed
    assert "  unrolling.unroll_it(loop, function=...)\n" in listed
    assert main(["backends"]) == 0
    output = capsys.readouterr().out
    assert (
        "  extensions  doubling of acme-doubling\n              unrolling of acme-unrolling"
        in output
    )
    program = tmp_path / "program.py"
    program.write_text(print_module(SCALE))
    steps = ['split(loop="i", factors=[None, 4])', 'unrolling.unroll_it(loop="i_1")']
    steps = [f"--pass={step}" for step in (*steps, "doubling.double_by_addition")]
    assert main(["opt", str(program), *steps]) == 0
    text = capsys.readouterr().out
    assert "T.unroll(4)" in text
    assert "X[vi] + X[vi]" in text


def test_a_primitive_of_an_extension_is_a_step(install):
    install("acme-unrolling", IMPORTS + PRIMITIVE, {"generic-cpu.unrolling": "acme_unrolling"})
    builder = gs.schedule(SCALE).split("i", factors=(None, 4))
    builder.apply("unrolling.unroll_it", "i_1")
    assert doubled(gs.compile(SCALE, schedule=builder))


FAULTS = {
    "it raises": ("1 / 0", "'acme' cannot extend the backend 'generic-cpu': ZeroDivisionError"),
    "a backend": (
        "@hookimpl\ndef gossamer_backends():\n    return [None]",
        "'acme' is registered as an extension of the backend 'generic-cpu', but registers a backend",
    ),
    "an unknown point": (
        PASS.format('Pass("p", "loop", str, at="after lunch")'),
        "The pass 'p' of the plugin 'acme' runs at 'after lunch', which is not an extension point",
    ),
    "a wrong stage": (
        PASS.format('Pass("p", "flat", str, at="before vectorize_loops")'),
        "'p' of the plugin 'acme' is for the flat stage, but modules are of the loop stage at 'before",
    ),
    "no stage": (
        PASS.format('Pass("p", "last", str)'),
        "of the plugin 'acme' is for the stage 'last'",
    ),
    "no pass": (
        PASS.format("str"),
        "gossamer_passes of the plugin 'acme' returned <class 'str'>; expected objects of type 'Pass'",
    ),
    "an intrinsic of others": (
        "@hookimpl\ndef gossamer_intrinsics():\n"
        '    return [Intrinsic("outer_product_float32_1x16", "", "")]',
        "'acme' and 'generic-cpu' both register an intrinsic 'outer_product_float32_1x16'",
    ),
    "a pass that raises": (
        PASS.format('Pass("p", "loop", lambda module: 1 / 0, at="before lower_blocks")'),
        "The plugin 'acme' cannot run its pass 'p': ZeroDivisionError",
    ),
    "contents that are too late": (
        f"from gossamer_ir import parse_module\nM = parse_module('''{BLOCK}''')\n"
        + PASS.format('Pass("p", "loop", lambda module: M, at="after lower_blocks")'),
        "'acme' cannot run its pass 'p': ValueError: it returned a module with blocks, which no pass removes "
        "after lower_blocks",
    ),
}


@pytest.mark.parametrize(("text", "message"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_extension_is_named(text, message, install):
    install("acme-faulty", IMPORTS + text, {"generic-cpu.acme": "acme_faulty"})
    with pytest.raises(PluginError) as caught:
        gs.compile(SCALE)
    assert message in str(caught.value)


def test_an_unknown_extension_point_lists_those_that_exist(install):
    text = IMPORTS + PASS.format('Pass("p", "loop", str, at="after lunch")')
    install("acme-faulty", text, {"generic-cpu.acme": "acme_faulty"})
    with pytest.raises(PluginError) as caught:
        gs.compile(SCALE)
    points = ", ".join(map(repr, extension_points()))
    assert f"Extension points are {points}." in str(caught.value)


def test_broken_extensions_are_listed_and_left_out_of_steps(install, capsys):
    install(
        "acme-faulty", "1 / 0", {"generic-cpu.acme": "acme_faulty", "other.acme": "acme_faulty"}
    )
    assert main(["backends"]) == 0
    listed = capsys.readouterr().out
    assert (
        "  extensions  acme of acme-faulty, which is broken: The plugin 'acme' cannot extend"
        in listed
    )
    assert main(["opt", "--list"]) == 0
    assert "acme" not in capsys.readouterr().out


def test_an_extension_of_a_misspelt_backend_is_reported(install, capsys):
    install("acme-late", IMPORTS, {"generic_cpu.late": "acme_late", "cuda.late": "acme_late"})
    reason = "is not used: there is no backend"
    with pytest.warns(PluginWarning, match=f"{reason} 'generic_cpu'. Did you mean 'generic-cpu'"):
        gs.compile(SCALE)
    main(["backends"])
    shown = capsys.readouterr().out
    assert f"The extension 'generic_cpu.late' of 'acme-late' {reason} 'generic_cpu'. Did" in shown
    assert f"The extension 'cuda.late' of 'acme-late' {reason} 'cuda'.\n" in shown


def test_one_module_extends_several_backends(install, tmp_path, monkeypatch):
    text = IMPORTS + PASS.format('Pass("nothing", "flat", lambda module: module)')
    install("acme-late", text, {"generic-cpu.late": "acme_late", "tiny.late": "acme_late"})
    registry = resolve_target.registry
    (cpu_point,) = registry.extension_entry_points("generic-cpu")
    (tiny_point,) = registry.extension_entry_points("tiny")
    loaded = [registry.extension("generic-cpu", cpu_point), registry.extension("tiny", tiny_point)]
    assert [extension.name for extension in loaded] == ["late", "late"]
    assert [extension.passes[0].name for extension in loaded] == ["nothing", "nothing"]
    assert [item.name for item in registry.plugin("generic-cpu").extensions] == [
        "late",
        "generic-cpu",
    ]


def test_two_distributions_with_one_extension_are_refused(install):
    for name in ("acme-one", "acme-two"):
        point = {"generic-cpu.same": name.replace("-", "_")}
        install(
            name,
            IMPORTS,
            point,
            version=f"1.{len(name)}{name[-1]}".replace("o", "0").replace("e", "1"),
        )
    with pytest.raises(
        PluginError, match=r"install the extension 'generic-cpu\.same': acme-one, acme-two"
    ):
        gs.compile(SCALE)


@pytest.mark.parametrize("name", ["generic-cpu.generic-cpu", "generic-cpu.", "generic-cpu.a.b"])
def test_the_name_of_an_extension_is_an_identifier(name, install):
    install("acme-named", IMPORTS, {name: "acme_named"})
    with pytest.raises(PluginError) as caught:
        gs.compile(SCALE)
    assert caught.value.code == "plugin.extension"
