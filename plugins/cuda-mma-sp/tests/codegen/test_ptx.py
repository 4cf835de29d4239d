"""What is not compiled to PTX."""

import pytest

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.records import Target


def test_memory_whose_size_varies_is_refused(flat):
    body = ('S = T.alloc_buffer((n,), "float32")', "S[0] = X[0]", "Y[0] = S[0]")
    with pytest.raises(UnsupportedError, match="cannot allocate 'S'") as caught:
        CudaBackend().compile(flat(*body), Target("cuda-mma-sp"))
    assert caught.value.code == "llvm.allocate.device"
