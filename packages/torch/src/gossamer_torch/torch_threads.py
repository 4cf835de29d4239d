"""Kernels run on torch's threads, as many as torch uses: a model alternates between both.

torch's threads spin for milliseconds after each operation. Beside them, threads of another pool do not run:
a product of cora with 128 features, between two operations of torch on two CPUs of a busy machine, took 1.1
to 3.8 times as long on a pool of its own as on torch's threads.
"""

from __future__ import annotations

import torch

from gossamer_backend import follow_num_threads
from gossamer_host_runtime import share_openmp_threads


def use_torch_threads() -> None:
    """Run the kernels of this process on torch's threads, and follow `torch.set_num_threads`, unless the user
    has chosen threads for kernels.

    >>> use_torch_threads()
    """
    share_openmp_threads()
    follow_num_threads(torch.get_num_threads)
