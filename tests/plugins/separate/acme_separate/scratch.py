"""Scratch memory: buffers that the entry of a module allocated become parameters of it."""

from msgspec.structs import replace

from gossamer_ir.nodes import Allocate, Param


def with_provided_scratch(module, layout):
    """Return a module whose entry takes the buffers of a layout as parameters, which have their names."""
    provided = {part.buffer.name for part in layout.buffers}
    return replace(
        module,
        functions=tuple(
            _with_parameters(function, layout, provided)
            if function.name == module.entry
            else function
            for function in module.functions
        ),
    )


def _with_parameters(function, layout, provided):
    bound = tuple(replace(part.buffer, handle=part.buffer.name) for part in layout.buffers)
    return replace(
        function,
        params=(*function.params, *(Param(buffer.name, "handle") for buffer in bound)),
        buffers=(*function.buffers, *bound),
        body=tuple(
            stmt
            for stmt in function.body
            if not (isinstance(stmt, Allocate) and stmt.buffer.name in provided)
        ),
    )
