"""Names with the values of parameters, for messages."""

from __future__ import annotations

from collections.abc import Mapping


def with_parameters(name: str, parameters: Mapping[str, int]) -> str:
    """Return a name, followed by the parameters if there are any.

    >>> with_parameters("ell_rows", {"width": 2}), with_parameters("csr", {})
    ('ell_rows (width=2)', 'csr')
    """
    texts = [f"{parameter}={value}" for parameter, value in parameters.items()]
    return f"{name} ({', '.join(texts)})" if texts else name
