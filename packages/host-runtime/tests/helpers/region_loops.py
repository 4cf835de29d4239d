"""Native loops over parallel regions, each of which checks that its work was done exactly once."""

from __future__ import annotations

import ctypes
from functools import cache

from gossamer_host_runtime.detection.llvm_cpu import any_cpu
from gossamer_host_runtime.loading.loader import load_object
from gossamer_host_runtime.native_target import target_machine, triple
from gossamer_llvm.optimization import parse

_TEXT = """
%region = type { i64, i64, i64, i64, i64, ptr, i32 }  ; ticket, chunks, done, steps, calls, parallel, inner

define void @body(ptr %region) nounwind {
entry:
  %chunks.at = getelementptr %region, ptr %region, i32 0, i32 1
  %chunks = load i64, ptr %chunks.at
  %done = getelementptr %region, ptr %region, i32 0, i32 2
  %steps.at = getelementptr %region, ptr %region, i32 0, i32 3
  %steps = load i64, ptr %steps.at
  %calls = getelementptr %region, ptr %region, i32 0, i32 4
  %call = atomicrmw add ptr %calls, i64 1 monotonic
  br label %take
take:
  %ticket = atomicrmw add ptr %region, i64 1 monotonic
  %is.left = icmp slt i64 %ticket, %chunks
  br i1 %is.left, label %work, label %return
work:
  %step = phi i64 [ 0, %take ], [ %next, %work ]
  %next = add i64 %step, 1
  %now = load volatile i64, ptr %steps.at
  %is.more = icmp slt i64 %next, %steps
  br i1 %is.more, label %work, label %count
count:
  %before = load atomic i64, ptr %done monotonic, align 8
  %added = atomicrmw add ptr %done, i64 1 monotonic
  br label %take
return:
  ret void
}

; A body that runs a region of its own.
define void @nested(ptr %region) nounwind {
  %parallel.at = getelementptr %region, ptr %region, i32 0, i32 5
  %parallel = load ptr, ptr %parallel.at
  %inner.at = getelementptr %region, ptr %region, i32 0, i32 6
  %inner = load i32, ptr %inner.at
  call void %parallel(ptr @body, ptr %region, i32 %inner, i32 0)
  ret void
}

; Runs regions, and returns how many of them were not complete at their end.
define i64 @regions(ptr %parallel, i64 %count, i32 %threads, i64 %chunks, i64 %steps, i32 %inner) nounwind {
entry:
  %region = alloca %region, align 64
  %chunks.at = getelementptr %region, ptr %region, i32 0, i32 1
  %done = getelementptr %region, ptr %region, i32 0, i32 2
  %steps.at = getelementptr %region, ptr %region, i32 0, i32 3
  %calls = getelementptr %region, ptr %region, i32 0, i32 4
  %parallel.at = getelementptr %region, ptr %region, i32 0, i32 5
  %inner.at = getelementptr %region, ptr %region, i32 0, i32 6
  store i64 %steps, ptr %steps.at
  store i64 0, ptr %calls
  store ptr %parallel, ptr %parallel.at
  store i32 %inner, ptr %inner.at
  %is.nested = icmp ne i32 %inner, 0
  %body = select i1 %is.nested, ptr @nested, ptr @body
  br label %look
look:
  %number = phi i64 [ 0, %entry ], [ %next, %run ]
  %wrong = phi i64 [ 0, %entry ], [ %wrong.next, %run ]
  %is.more = icmp slt i64 %number, %count
  br i1 %is.more, label %run, label %return
run:
  store i64 0, ptr %region
  store i64 %chunks, ptr %chunks.at
  store i64 0, ptr %done
  call void %parallel(ptr %body, ptr %region, i32 %threads, i32 0)
  ; Work that is done twice, or later, changes this as well.
  %found = load i64, ptr %done
  %is.wrong = icmp ne i64 %found, %chunks
  %one = zext i1 %is.wrong to i64
  %wrong.next = add i64 %wrong, %one
  %next = add i64 %number, 1
  br label %look
return:
  ret i64 %wrong
}
"""


@cache
def _driver():
    code = target_machine(any_cpu()).emit_object(parse(f'target triple = "{triple()}"\n{_TEXT}'))
    address, library = load_object(code, "regions")
    kinds = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32, ctypes.c_int64, ctypes.c_int64)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds, ctypes.c_uint32)
    return prototype(address), library


def incomplete_regions(parallel, count, *, threads, chunks=None, steps=1, inner=0):
    """Run `count` regions of `chunks` chunks (as many as threads by default), and return the number of those
    that were not complete. `steps` is the work of a chunk; `inner` nests a region of that many threads."""
    chunks = threads if chunks is None else chunks
    return _driver()[0](parallel, count, threads, chunks, steps, inner)
