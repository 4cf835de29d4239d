"""Contexts of calls: a kernel in this process has neither another device nor streams."""

import re

import numpy as np
import pytest

from gossamer_backend import HOST, CallContext, Device
from gossamer_ir.core.build import index_var
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature

X = BufferParam("x", "X", "float64", (index_var("n"),), is_read=True, is_written=True)
COUNT = Signature("count", (X,), (ScalarParam("n", "int64"),), ("x", "n"))
WRONG = {
    "another device": (
        CallContext(Device(2, 0)),
        "The kernel 'count' runs on 'cpu', and the context is one of the device 'cuda:0'.",
    ),
    "a stream": (CallContext(HOST, 7), "The kernel 'count' runs on 'cpu', which has no streams."),
}


@pytest.fixture
def kernel(make_kernel):
    return make_kernel(COUNT, lambda x, n, workspace: 0)


@pytest.mark.parametrize(("context", "text"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("way", ["call", "bind", "run_trusted", "plan"])
def test_a_native_kernel_refuses_other_contexts(kernel, way, context, text):
    names = {"pointers": (), "scalars": ("n",), "passed": ("x",)}
    calls = {
        "call": lambda: kernel(np.zeros(2), context=context),
        "bind": lambda: kernel.bind(np.zeros(2), context=context),
        "run_trusted": lambda: kernel.run_trusted(np.zeros(2), 2, context=context),
        "plan": lambda: kernel.plan(**names, context=context),
    }
    with pytest.raises(ArgumentError, match=re.escape(text)) as caught:
        calls[way]()
    assert caught.value.code == "kernel.context"


def test_the_context_of_the_host_is_accepted(make_kernel):
    def allocate(size):
        raise AssertionError(
            "a kernel that allocates its own memory calls no function of the caller"
        )

    def count(x, n, workspace):
        sizes.append(n)
        return 0

    kernel, sizes = make_kernel(COUNT, count), []
    context = CallContext(scratch=allocate)
    kernel(np.zeros(2), context=context)
    kernel.bind(np.zeros(2), context=context)()
    kernel.run_trusted(np.zeros(2), 2, context=context)
    assert sizes == [2, 2, 2]
