"""Every error code of the source has an example: a test that raises it, and its exact message.

`tests/repository/test_generated.py` runs the tests again that `golden/errors.json` names, and compares the
messages.
"""

from __future__ import annotations

import fnmatch

import pytest

import gossamer_lower
from tools import ROOT
from tools.generators.errors import (
    NOT_RUN,
    codes_of_file,
    codes_of_source,
    is_covered,
    stored_examples,
)

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


def test_every_code_of_the_source_has_an_example_and_no_other():
    source, pinned = codes_of_source(), stored_examples().keys()
    assert [code for code in sorted(source) if not fnmatch.filter(pinned, code)] == []
    assert [code for code in pinned if not is_covered(code, source)] == []


def test_the_tests_of_a_distribution_that_does_not_run_here_name_its_codes():
    folder = ROOT / NOT_RUN
    codes = {code for path in folder.glob("src/**/*.py") for code in codes_of_file(path, "Error")}
    texts = [path.read_text() for path in folder.glob("tests/**/test_*.py")]
    assert len(codes) > 10
    assert [code for code in sorted(codes) if not any(f'"{code}"' in text for text in texts)] == []


def test_each_example_is_a_sentence_with_its_code():
    for code, row in stored_examples().items():
        first = row["text"].split(f"[{code}]")[0].rstrip()
        assert f"[{code}]" in row["text"]
        assert first.endswith((".", "?", ")", "`", "'")), row["text"]


def test_codes_of_lowering_name_the_pass_and_the_reason():
    # Two passes share the checks of the inspector.
    passes = {*gossamer_lower.__all__, "inspector"}
    for code in codes_of_source():
        distribution, *rest = code.split(".")
        if distribution == "lower":
            assert len(rest) == 2, code
            assert rest[0] in passes, code
