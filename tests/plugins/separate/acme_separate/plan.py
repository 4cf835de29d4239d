"""Plans of repeated calls on arrays of the device."""

from functools import partial

from acme_separate.memory import SeparateArray
from gossamer_backend.plugin_api import evaluate_size, numpy_dtype


class SeparatePlan:
    """Accepts arrays of the device only; those of the host are left to `bind`."""

    def __init__(self, kernel, pointers, scalars, passed, context):
        self.kernel, self._context = kernel, context
        self._pointers, self._scalars = pointers, scalars
        by_name = {param.name: param for param in kernel.signature.buffers}
        self._passed = [by_name[name] for name in passed]

    def bind(self, fixed):
        return partial(self.run, fixed)

    def run(self, fixed, inputs, output):
        if len(inputs) != len(self._passed) - 1:
            return None
        arguments = dict(zip(self._pointers, fixed.pointers, strict=True))
        arguments |= zip(self._scalars, fixed.scalars, strict=True)
        arguments = {
            name: arguments[name] for name in self.kernel.signature.order if name in arguments
        }
        for param, array in zip(self._passed, (*inputs, output), strict=True):
            shape = tuple(evaluate_size(size, arguments, arrays={}) for size in param.shape)
            form = (shape, numpy_dtype(param))
            if array is None and param is self._passed[-1]:
                array = SeparateArray(*form)
            if type(array) is not SeparateArray or (array.shape, array.dtype) != form:
                return None
            arguments[param.name] = array.address
        if fixed.check is not None:
            return None
        self.kernel.put(
            arguments, self.kernel.scratch(arguments, self._context), self._context.stream
        )
        return array
