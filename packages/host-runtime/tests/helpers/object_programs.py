"""Programs in LLVM IR whose object code is loaded, and their object code for any architecture."""

from __future__ import annotations

import llvmlite.binding as llvm

from gossamer_backend.elf_records import header_of, sections_of
from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.detection.llvm_cpu import host_cpu
from gossamer_host_runtime.detection.riscv64 import RISCV64_BASE
from gossamer_host_runtime.loading.elf import RELOCATION_RULES
from gossamer_host_runtime.native_target import target_machine, triple
from gossamer_llvm.optimization import parse

ARCHITECTURES = tuple(RELOCATION_RULES)

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
    # Other libraries may replace it, so the assembler leaves the calls to a linker.
    "calls of a global function": """
define i64 @g(i64 %n) noinline { %r = add i64 %n, 5  ret i64 %r }
define i64 @f(i64 %n) { %a = call i64 @g(i64 %n)  %r = call i64 @g(i64 %a)  ret i64 %r }""",
}

CALLING_LIBRARIES = {
    "function": """
declare i64 @labs(i64)
define i64 @f(i64 %n) { %m = sub i64 3, %n  %r = call i64 @labs(i64 %m)  ret i64 %r }""",
    "several functions": """
declare ptr @calloc(i64, i64)
declare void @free(ptr)
define internal i64 @g(i64 %n) noinline { %r = add i64 %n, 5  ret i64 %r }
define i64 @f(i64 %n) {
  %p = call ptr @calloc(i64 64, i64 8)
  %q = getelementptr i64, ptr %p, i64 %n
  %a = call i64 @g(i64 %n)
  store volatile i64 %a, ptr %q
  %r = load volatile i64, ptr %q
  call void @free(ptr %p)
  ret i64 %r
}""",
}

FOREIGN = {
    "unknown function": """
declare i64 @gossamer_no_such_function(i64)
define i64 @f(i64 %n) { %r = call i64 @gossamer_no_such_function(i64 %n)  ret i64 %r }""",
    "thread-local variable": """
@t = internal thread_local global i64 3
define i64 @f(i64 %n) { %r = load i64, ptr @t  ret i64 %r }""",
}

SLOTTED = """
@shared = global i64 5
define i64 @f(i64 %n) { %s = load volatile i64, ptr @shared  %r = add i64 %n, %s  ret i64 %r }"""
"""Position-independent code loads the address of a variable that another library may replace."""

EVERYTHING = f"""
@t = internal constant [64 x i64] [{TABLE}]
@a = internal constant i64 11
@b = internal constant i64 22
@p = internal constant [2 x ptr] [ptr @a, ptr @b]
@z = internal global [64 x i64] zeroinitializer, align 64
define internal i64 @g(i64 %n) noinline {{
  %at = and i64 %n, 1
  %q = getelementptr ptr, ptr @p, i64 %at
  %s = load volatile ptr, ptr %q
  %r = load i64, ptr %s
  ret i64 %r
}}
define i64 @f(i64 %n) {{
  %at = and i64 %n, 63
  %p = getelementptr i64, ptr @t, i64 %at
  %x = load i64, ptr %p
  %q = getelementptr i64, ptr @z, i64 %at
  store volatile i64 %x, ptr %q
  %y = call i64 @g(i64 %x)
  %r = add i64 %x, %y
  ret i64 %r
}}"""


def object_of(text, name=None):
    """Return the object code for an architecture, by default for the CPU of this machine."""
    if name in (None, architecture()):
        return target_machine(host_cpu()).emit_object(
            parse(f'target triple = "{triple()}"\n{text}')
        )
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    other = f"{name}-unknown-linux-gnu"
    features = ",".join(f"+{each}" for each in RISCV64_BASE) if name == "riscv64" else ""
    machine = llvm.Target.from_triple(other).create_target_machine(
        features=features, reloc="pic", codemodel="default"
    )
    return machine.emit_object(parse(f'target triple = "{other}"\n{text}'))


def names_of_sections(code):
    """Return the sections of an object by name."""
    header = header_of(code)
    rows = sections_of(code, header)
    names = code[rows[header.section_names].offset :]
    return {names[row.name : names.index(b"\0", row.name)].decode(): row for row in rows}
