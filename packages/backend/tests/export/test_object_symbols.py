"""Symbols of object files: one is renamed, and those that are missing are listed."""

import ctypes
import subprocess

import pytest
from exported_kernels import COMPILER, OBJECT, needs_compiler

from gossamer_backend.export.object_symbols import rename_symbol, undefined_symbols
from gossamer_ir.errors import UnsupportedError


def test_a_symbol_is_renamed_and_the_others_stay():
    renamed = rename_symbol(OBJECT, "gossamer_kernel", new="another_name_of_any_length")
    assert undefined_symbols(renamed) == undefined_symbols(OBJECT) == ("calloc", "free")
    again = rename_symbol(renamed, "another_name_of_any_length", new="a")
    with pytest.raises(UnsupportedError, match="define no symbol 'gossamer_kernel'"):
        rename_symbol(again, "gossamer_kernel", new="b")


@needs_compiler
def test_a_real_object_links_under_its_new_name(tmp_path):
    (tmp_path / "k.c").write_text(
        "#include <stdlib.h>\nlong gossamer_kernel(long n)"
        "{ void *p = calloc(1, n); free(p); return n + 1; }\n"
    )
    run = {"cwd": tmp_path, "check": True}
    subprocess.run([COMPILER, "-c", "-O1", "-fPIC", "-fno-builtin", "k.c"], **run)
    code = (tmp_path / "k.o").read_bytes()
    assert {"calloc", "free"} <= set(undefined_symbols(code))
    (tmp_path / "k.o").write_bytes(rename_symbol(code, "gossamer_kernel", new="my_kernel"))
    subprocess.run([COMPILER, "-shared", "-o", "k.so", "k.o"], **run)
    library = ctypes.CDLL(str(tmp_path / "k.so"))
    assert library.my_kernel(4) == 5
    assert not hasattr(library, "gossamer_kernel")
