"""Every public name is documented, and every public function is shown by an example that runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import sys

import numpy as np
import pytest

BESIDES = {
    "gossamer_ir": ("simplify.simplify", "specialize.specialize", "verify.verify"),
    "gossamer_schedule": ("rules.choose", "rules.explain"),
    "gossamer_generic_cpu": ("backend.GenericCpu",),
}
"""What a distribution offers outside its `__all__`."""

SHOWN_ELSEWHERE = {
    "gossamer_backend.BackendInfo": "what `Registry.list` returns",
    "gossamer_backend.BoundKernel": "what `Kernel.bind` returns",
    "gossamer_backend.CacheInfo": "what `ArtifactCache.info` returns",
    "gossamer_backend.CacheWarning": "a warning",
    "gossamer_backend.PreparedKernel": "what `Kernel.prepare` returns",
    "gossamer_ir.FormatDescription": "a node; `parse_format` reads one",
}
"""Classes that no example names, and why."""

PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def public(distribution):
    """The functions and classes that a distribution offers, by their full names."""
    package = importlib.import_module(distribution.package)
    paths = (*getattr(package, "__all__", ()), *BESIDES.get(distribution.package, ()))
    for path in paths:
        module, _, name = path.rpartition(".")
        home = importlib.import_module(f"{package.__name__}.{module}") if module else package
        found = inspect.unwrap(getattr(home, name))
        if inspect.isfunction(found) or inspect.isclass(found):
            yield f"{package.__name__}.{path}", found


def example_of(path, found):
    """The examples of a docstring, with the names that stand beside what it documents."""
    home = sys.modules.get(found.__module__) or importlib.import_module(path.partition(".")[0])
    globs = {**vars(home), path.rpartition(".")[2]: found, "np": np}
    return doctest.DocTestParser().get_doctest(inspect.getdoc(found) or "", globs, path, path, 0)


def code_of_documents(root):
    """All examples of the READMEs and the documentation, which test_documents.py runs."""
    places = ("*.md", "docs/*.md", "packages/*/README.md", "plugins/*/README.md")
    texts = [path.read_text() for place in places for path in root.glob(place)]
    return "\n".join(block for text in texts for block in PYTHON.findall(text))


def test_every_public_name_is_documented(distribution):
    assert [name for name, found in public(distribution) if not inspect.getdoc(found)] == []


def is_shown(path, found, documents):
    """A function is called by name; a class may come from a function that returns it."""
    examples = "".join(example.source for example in example_of(path, found).examples)
    if inspect.isclass(found) and examples:
        return True
    return re.search(rf"\b{path.rpartition('.')[2]}\b", examples + documents) is not None


def test_every_public_name_is_shown_by_an_example(distribution, root):
    documents = code_of_documents(root)
    missing = {path for path, found in public(distribution) if not is_shown(path, found, documents)}
    prefix = f"{distribution.package}."
    assert missing == {name for name in SHOWN_ELSEWHERE if name.startswith(prefix)}


def test_the_examples_of_public_names_run(distribution, monkeypatch, tmp_path):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for path, found in public(distribution):
        assert runner.run(example_of(path, found)).failed == 0, path


@pytest.mark.parametrize("name", SHOWN_ELSEWHERE)
def test_what_is_excused_exists(name):
    package, _, attribute = name.rpartition(".")
    assert inspect.isclass(getattr(importlib.import_module(package), attribute))
