"""Facts about arrays on a device that only interpreted programs can read."""

import numpy as np
from array_exporters import Exporter

from gossamer_backend import GeneratedCheck
from gossamer_backend.arguments.view_of import view_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.facts.fact_violations import FactOperands, first_violation
from gossamer_ir.interpret import GuardFailed, run
from gossamer_ir.nodes import Monotone, SortedSegments


class KernelElsewhere:
    """A kernel on arrays that only it can read: those that exporters have."""

    def __init__(self, module):
        self.module = module

    def run_trusted(self, *args):
        names = [param.name for param in self.module.functions[0].params]
        values = [value.array if isinstance(value, Exporter) else value for value in args]
        try:
            run(self.module, dict(zip(names, values, strict=True)))
        except GuardFailed as error:
            raise ArgumentError("kernel.out_of_bounds", f"'{error.buffer}'") from None


def is_found_to_hold(facts, **arrays):
    programs = []

    def compile(name, program):
        programs.append(name)
        return KernelElsewhere(program())

    views = {
        name: view_of(Exporter(array, device=(2, 0)), name=name) for name, array in arrays.items()
    }
    return GeneratedCheck(compile)(facts, {"n": 4}, views), programs


def holds(facts, **arrays):
    """Return whether NumPy finds no violation."""
    sizes = {"n": 4}

    def size(expr):
        return sizes[expr.name] if hasattr(expr, "name") else int(expr.text)

    names = {name: name for name in arrays}
    return first_violation(facts, FactOperands(arrays, names, size)) is None


def offsets(*values):
    return np.array(values, np.int32)


def segments(*names):
    facts = []
    for offsets_name, name in names:
        facts += [Monotone(offsets_name), SortedSegments(name, offsets_name, unique=True)]
    return facts
