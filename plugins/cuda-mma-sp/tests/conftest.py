"""Flat modules from scripts; the folder of helpers."""

import shutil

import pytest

from gossamer_ir.script import parse_module


def pytest_addoption(parser):
    try:
        parser.addoption(
            "--all-programs", action="store_true", help="Run conformance tests with all programs."
        )
    except ValueError as error:
        if "already added" not in str(error):
            raise


@pytest.fixture
def flat():
    """A flat module whose arrays X and Y have n elements of a dtype."""

    def parse(*lines, dtype="float32"):
        return parse_module(
            "\n".join((
                "@T.prim_func",
                "def f(x: T.handle, y: T.handle, n: T.int64) -> None:",
                '    T.stage("flat")',
                f'    X = T.match_buffer(x, (n,), "{dtype}")',
                f'    Y = T.match_buffer(y, (n,), "{dtype}")',
                *(f"    {line}" for line in lines),
            ))
        )  # fmt: skip

    return parse


@pytest.fixture
def fake_gpu(monkeypatch):
    """A GPU that the interpreter of PTX runs, behind a library and packages of drivers."""
    from fake_drivers import installed_drivers

    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc, which compiles a library that stands in for that of a driver")
    with installed_drivers(monkeypatch) as gpu:
        yield gpu
