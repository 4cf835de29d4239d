"""The form of a product with a 2:4 matrix on the CPU of this machine, by a model of bytes and operations.

The kernel for 2:4 reads an index and a row of the dense operand for each slot, as a product in CSR does, and
also sorts out the slots of a group. Dense products have twice as many operations, which the library of NumPy
does on operands in the first-level cache. In cycles for each slot and each vector of features, on an Intel
Xeon with AVX-512 (model 207, one thread, from 32 to 200 features):

* 1.6 for the dense product: two vectors, each at 1.25 vectors a cycle
* 1.3 for the product in CSR while the dense operand has up to a 32nd of the private cache, so that its
  rows stay in the first-level cache or arrive in time; 2.4 for larger ones
* 3 for the kernel for 2:4

With fewer features than lanes, vectors are not full, and the dense product uses kernels of its own. A matrix
that is not a tensor would be converted at each call, which takes longer than its product. No library
multiplies int8 with sums in int32, or rounds factors to TF32.
"""

from __future__ import annotations

import numpy as np

from gossamer_ir.core.dtypes import SCALARS, SUM_DTYPES
from gossamer_machine import Machine
from gossamer_machine.intrinsics.n_m_operands import n_m_operands
from gossamer_tune.n_m_products.product_form import FormChoice, ProductForm, name_of_form

DENSE_CYCLES, CSR_CYCLES, UNCACHED_CSR_CYCLES, N_M_CYCLES = 1.6, 1.3, 2.4, 3.0
LIBRARY_DTYPES = tuple(
    name for name in SUM_DTYPES if SCALARS[name].kind == "float" and SCALARS[name].stored_as == name
)
"""The dtypes that libraries multiply: the floats that NumPy has, in the dtypes of their sums."""
CACHED_DIVISOR = 32
"""The dense operand is cache-resident if it has at most a 32nd of the private cache."""


def choose_cpu_form(
    dtype: str,
    *,
    columns: int | None,
    features: int | None,
    is_tensor: bool,
    machine: Machine,
) -> FormChoice:
    """Return the form that the model expects to be the fastest. Sizes may be unknown (None).

    >>> machine = Machine(min_vector_bits=512, private_cache=2 << 20)
    >>> choose_cpu_form("float32", columns=1024, features=200, is_tensor=True, machine=machine).form
    'dense'
    >>> choose_cpu_form("float32", columns=64, features=64, is_tensor=True, machine=machine).form
    'csr'
    """
    if dtype not in LIBRARY_DTYPES:
        return FormChoice(
            "kernel", f"no library multiplies {dtype} with sums in {n_m_operands(dtype).sums}"
        )
    if not is_tensor:
        return FormChoice(
            "dense", "a matrix that is not a tensor would be converted at each call, for longer"
        )
    sums = np.dtype(SUM_DTYPES[dtype])
    lanes = machine.lanes(sums.name)
    if features is not None and features < lanes:
        return FormChoice("dense", f"{features} features do not fill a vector of {lanes} lanes")
    size = None if columns is None or features is None else columns * features * sums.itemsize
    return _cheapest(size, most=machine.private_cache // CACHED_DIVISOR)


def _cheapest(size: int | None, *, most: int) -> FormChoice:
    """Return the form with the fewest cycles. The dense operand has `size` bytes (None: unknown); it stays in
    the first-level cache up to `most`."""
    is_cached = size is not None and size <= most
    costs: dict[ProductForm, float] = {
        "dense": DENSE_CYCLES,
        "csr": CSR_CYCLES if is_cached else UNCACHED_CSR_CYCLES,
        "kernel": N_M_CYCLES,
    }
    listed = ", ".join(f"{name_of_form(form)} {cycles}" for form, cycles in costs.items())
    place = "an unknown number of" if size is None else f"{size}"
    return FormChoice(
        min(costs, key=lambda form: costs[form]),
        f"the dense operand has {place} bytes, and up to {most} stay in the cache; cycles for each slot and "
        f"vector: {listed}",
    )
