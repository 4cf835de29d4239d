"""Exported headers: they compile without warnings, whatever their comments quote."""

import shutil
import subprocess

import pytest
from exported_kernels import COMPILER, artifact, needs_compiler

from gossamer_backend.export import export_artifact


def test_nothing_from_outside_ends_a_comment_of_the_header(tmp_path, no_linker):
    files = export_artifact(artifact(target="toy:cpu=*/evil/*"), tmp_path)
    text = files.header.read_text()
    assert "*/evil" not in text
    assert text.count("/*") == text.count("*/")


@needs_compiler
@pytest.mark.parametrize("language", ["c99", "c17", "c++11", "c++17"])
def test_headers_compile_without_a_warning(tmp_path, language):
    compiler = COMPILER if language.startswith("c1") or language == "c99" else shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    for name in ("first", "second"):
        export_artifact(artifact(bounds_checked_buffers=("X", "P")), tmp_path, name=name)
    source = tmp_path / ("main.c" if "++" not in language else "main.cpp")
    source.write_text(
        '#define n 1\n#include "first.h"\n#include "second.h"\n#include "first.h"\n'
        "int main(void) {\n"
        "    struct gossamer_workspace workspace = gossamer_one_thread();\n"
        "    workspace.failed_buffer = 1;\n"
        "    return first_failed_buffer(&workspace)[0] == 'P' ? 0 : 1;\n}\n"
    )
    flags = [f"-std={language}", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    command = [compiler, *flags, "-o", "main", source.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0
