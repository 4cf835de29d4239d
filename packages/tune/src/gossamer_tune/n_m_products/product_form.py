"""The forms in which a product with an N:M matrix is computed, and the choice of one."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from gossamer_ir.interchange.records import Decision

ProductForm: TypeAlias = Literal["dense", "csr", "blocks", "kernel"]
_WHAT: dict[ProductForm, str] = {
    "dense": "the dense product of NumPy",
    "csr": "the product in CSR (spmm)",
    "blocks": "the product of dense blocks (spmm in BSR)",
    "kernel": "the kernel for N:M",
}


def name_of_form(form: ProductForm) -> str:
    """Return a form in the words of reports.

    >>> name_of_form("dense")
    'the dense product of NumPy'
    """
    return _WHAT[form]


class FormChoice(NamedTuple):
    """The form in which a product is computed, and the reason."""

    form: ProductForm
    why: str

    @property
    def decision(self) -> Decision:
        """The choice as a decision of a report."""
        return Decision(name_of_form(self.form), self.why, stage="coordinate")
