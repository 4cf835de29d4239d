"""Names for the other distributions of the release, besides the exports of the package.

The choice among forms of products with N:M matrices. A release pins the versions of its distributions, so
these names may change with each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_tune.n_m_products.cpu_form import LIBRARY_DTYPES, choose_cpu_form
    from gossamer_tune.n_m_products.grid_form import block_size, choose_grid_form
    from gossamer_tune.n_m_products.product_form import FormChoice, ProductForm

_HOMES = {
    "FormChoice": "gossamer_tune.n_m_products.product_form",
    "LIBRARY_DTYPES": "gossamer_tune.n_m_products.cpu_form",
    "ProductForm": "gossamer_tune.n_m_products.product_form",
    "block_size": "gossamer_tune.n_m_products.grid_form",
    "choose_cpu_form": "gossamer_tune.n_m_products.cpu_form",
    "choose_grid_form": "gossamer_tune.n_m_products.grid_form",
}

__all__ = [
    "FormChoice",
    "LIBRARY_DTYPES",
    "ProductForm",
    "block_size",
    "choose_cpu_form",
    "choose_grid_form",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
