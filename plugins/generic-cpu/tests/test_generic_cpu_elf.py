"""Objects loaded without LLVM give the results of LLVM's linker; unsupported objects return None."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from gossamer_generic_cpu.codegen.compiler import parse
from gossamer_generic_cpu.loading.elf import is_supported, place
from gossamer_generic_cpu.loading.linker import link_object
from gossamer_generic_cpu.target.host import host
from gossamer_generic_cpu.target.llvm_cpu import host_cpu
from gossamer_generic_cpu.target.machine import target_machine, triple

pytestmark = pytest.mark.skipif(not is_supported(), reason="another system than x86-64 Linux")

BRANCHES = "\n".join(f"  i64 {at}, label %b{at}" for at in range(8))
BLOCKS = "\n".join(
    f"b{at}:\n  store i64 {at * at * 7919}, ptr %cell\n  br label %done" for at in range(8)
)
TABLE = ", ".join(f"i64 {at * 1000003}" for at in range(64))

PLAIN = {
    "constant": "define i64 @f(i64 %n) { %r = mul i64 %n, 77  ret i64 %r }",
    "floats": """
define i64 @f(i64 %n) {
  %x = sitofp i64 %n to double
  %y = fmul double %x, 0x400921FB54442D18
  %r = fptosi double %y to i64
  ret i64 %r
}""",
    "table": f"""
@t = internal constant [64 x i64] [{TABLE}]
define i64 @f(i64 %n) {{
  %at = and i64 %n, 63
  %p = getelementptr i64, ptr @t, i64 %at
  %r = load i64, ptr %p
  ret i64 %r
}}""",
    "addresses": """
@a = internal constant i64 11
@b = internal constant i64 22
@p = internal constant [2 x ptr] [ptr @a, ptr @b]
define i64 @f(i64 %n) {
  %at = and i64 %n, 1
  %q = getelementptr ptr, ptr @p, i64 %at
  %s = load volatile ptr, ptr %q
  %r = load i64, ptr %s
  ret i64 %r
}""",
    "branches": f"""
define i64 @f(i64 %n) {{
  %cell = alloca i64
  store i64 -1, ptr %cell
  %at = and i64 %n, 15
  switch i64 %at, label %done [
{BRANCHES} ]
{BLOCKS}
done:
  %r = load i64, ptr %cell
  ret i64 %r
}}""",
    "zeros": """
@z = internal global [4096 x i64] zeroinitializer, align 64
define i64 @f(i64 %n) {
  %p = getelementptr i64, ptr @z, i64 %n
  %r = load volatile i64, ptr %p
  ret i64 %r
}""",
    "calls": """
define internal i64 @g(i64 %n) noinline { %r = add i64 %n, 5  ret i64 %r }
define i64 @f(i64 %n) { %a = call i64 @g(i64 %n)  %r = call i64 @g(i64 %a)  ret i64 %r }""",
}

FOREIGN = {
    "function of a library": """
declare i64 @labs(i64)
define i64 @f(i64 %n) { %r = call i64 @labs(i64 %n)  ret i64 %r }""",
    "thread-local variable": """
@t = internal thread_local global i64 3
define i64 @f(i64 %n) { %r = load i64, ptr @t  ret i64 %r }""",
}


def object_of(text):
    return target_machine(host_cpu()).emit_object(parse(f'target triple = "{triple()}"\n{text}'))


def call(address, value):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(value)


@pytest.mark.parametrize("name", PLAIN)
def test_placed_object_runs_as_when_linked_by_llvm(name):
    code = object_of(PLAIN[name])
    placed, (linked, library) = place(code, "f"), link_object(code, "f")
    assert placed is not None
    assert library is not None
    for value in (0, 1, 2, 7, 8, 63):
        assert call(placed, value) == call(linked, value)


@pytest.mark.parametrize("name", FOREIGN)
def test_what_needs_a_linker_is_left_to_one(name):
    assert place(object_of(FOREIGN[name]), "f") is None


def test_unknown_symbol_and_other_files_are_not_placed():
    code = object_of(PLAIN["constant"])
    assert place(code, "g") is None
    for other in (b"", b"\x7fELF", b"MZ" + code[2:], code[:16] + b"\3\0" + code[18:], b"\0" * 999):
        assert place(other, "f") is None


def test_no_part_of_an_object_is_placed():
    code = object_of(PLAIN["table"])
    for length in range(0, len(code), 7):
        assert place(code[:length], "f") is None


def test_digest_of_the_host_is_that_of_the_next_process():
    program = "from gossamer_generic_cpu.target.host import host; print(host().digest)"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == host().digest
    assert host().vector_bits in ("128", "256", "512")
