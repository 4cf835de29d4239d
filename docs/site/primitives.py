"""Primitives are shown as they are called: `@primitive` passes a cursor to the function that it decorates."""

from __future__ import annotations

from typing import Any

import griffe


class Primitives(griffe.Extension):
    """Changes the first parameter and the result of each decorated function that griffe reads."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Give a decorated function the parameter and the result of its callers."""
        if any(str(decorator.value).startswith("primitive(") for decorator in func.decorators):
            func.parameters[0].name = "module"
            func.parameters[0].annotation = "Module"
            func.returns = "PrimitiveResult"
