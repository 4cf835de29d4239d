"""Programs of the testkit's conformance suite, with kernels in the interpreter of PTX.

A sample of them, since one thread of Python interprets all threads: every program is run by hand with
`BackendSuite` when the emitter or the interpreter changes.
"""

import pytest

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_testkit import BackendSuite, corpus_names

TARGET = "cuda-mma-sp:driver=interpreter"
SAMPLE = corpus_names()[::9]


class Suite(BackendSuite):
    backend = CudaBackend()
    targets = (TARGET,)


def test_its_capabilities_are_words_that_exist():
    Suite().test_its_capabilities_are_words_that_exist()


@pytest.mark.parametrize("program", SAMPLE)
def test_a_module_of_the_corpus_is_correct(program):
    Suite().test_a_module_of_the_corpus_is_correct(program, TARGET)
