"""Debug information of emitted LLVM IR: the lines of the printed module."""

import re

from gossamer_ir.script import parse_module, print_module
from gossamer_llvm import TargetInfo, emit_llvm_ir
from gossamer_llvm.optimization import parse

MODULE = parse_module("""
@T.prim_func
def f(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n):
        if X[i] > 0.0:
            Y[i] = X[i] / 3.0
        else:
            Y[i] = 1.0
    Y[0] = 7.0
""")
TARGET = TargetInfo("x86_64-unknown-linux-gnu")


def test_instructions_have_the_lines_of_their_statements():
    text = emit_llvm_ir(MODULE, target_info=TARGET, script="kernel.py")
    parse(text)
    script = print_module(MODULE).splitlines()
    lines = dict(re.findall(r"^(!\d+) = !DILocation\(line: (\d+)", text, re.MULTILINE))
    places = {
        match[1].split()[0]: script[int(lines[match[2]]) - 1].strip()
        for match in re.finditer(r"^  (?:%\w+ = )?(.*), !dbg (!\d+)$", text, re.MULTILINE)
    }
    assert places["fdiv"] == "Y[i] = X[i] / 3.0"
    assert places["fcmp"] == "if X[i] > 0.0:"
    assert places["store"] == "Y[0] = 7.0"
    # The increment of the variable, which follows the body.
    assert places["phi"] == places["add"] == "for i in T.serial(n):"


def test_without_a_file_nothing_names_lines():
    assert not re.search("dbg|DI[A-Z]", emit_llvm_ir(MODULE, target_info=TARGET))
