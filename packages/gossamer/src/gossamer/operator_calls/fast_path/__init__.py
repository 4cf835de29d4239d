"""The fast path: straight-line code checks operands in their usual form, and runs a prepared plan."""
