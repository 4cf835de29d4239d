"""A fluent way to fold primitives over a module."""

from __future__ import annotations

from gossamer_ir.contracts import Arg, Step, Trace
from gossamer_ir.nodes import Module
from gossamer_schedule.replay import apply
from gossamer_schedule.steps import step


class ScheduleBuilder:
    """Applies primitives one after the other, and keeps the module, the trace and the names.

    Every method takes the arguments of the primitive of its name, and returns the builder.
    `function` chooses the function of a module with several.

    >>> from gossamer_schedule.examples import SCALE
    >>> from gossamer_schedule.show import body_text
    >>> builder = ScheduleBuilder(SCALE).split("i", factors=(None, 8)).unroll("i_1")
    >>> print(body_text(builder.module))
    for i_0 in T.serial((n + 7) // 8):
        for i_1 in T.unroll(8):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * 8 + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    >>> [step.op for step in builder.trace]
    ['split', 'unroll']
    """

    def __init__(self, module: Module, *, function: str | None = None) -> None:
        self._module = module
        self._function = function
        self._trace: list[Step] = []
        self._names: tuple[str, ...] = ()

    @property
    def module(self) -> Module:
        """The module with all steps applied."""
        return self._module

    @property
    def trace(self) -> Trace:
        """The steps so far."""
        return tuple(self._trace)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the last step made or moved."""
        return self._names

    def _apply(self, op: str, **args: Arg) -> ScheduleBuilder:
        result = apply(self._module, Step(op, step(**args, function=self._function)))
        self._module = result.module
        self._names = result.names
        self._trace.append(result.step)
        return self

    def sparse_fuse(self, iteration: str, *, axes: tuple[str, ...]) -> ScheduleBuilder:
        return self._apply("sparse_fuse", iteration=iteration, axes=axes)

    def sparse_reorder(self, iteration: str, *, order: tuple[str, ...]) -> ScheduleBuilder:
        return self._apply("sparse_reorder", iteration=iteration, order=order)

    def sparse_unfuse(self, iteration: str, *, axes: tuple[str, ...]) -> ScheduleBuilder:
        return self._apply("sparse_unfuse", iteration=iteration, axes=axes)

    def split(self, loop: str, *, factors: tuple[int | str | None, ...]) -> ScheduleBuilder:
        return self._apply("split", loop=loop, factors=factors)

    def reorder(self, *loops: str) -> ScheduleBuilder:
        return self._apply("reorder", loops=loops)

    def parallel(
        self, loop: str, *, weight: str | None = None, grain: int | None = None
    ) -> ScheduleBuilder:
        return self._apply("parallel", loop=loop, weight=weight, grain=grain)

    def vectorize(self, loop: str, *, rest: str | None = None) -> ScheduleBuilder:
        return self._apply("vectorize", loop=loop, rest=rest)

    def unroll(self, loop: str) -> ScheduleBuilder:
        return self._apply("unroll", loop=loop)

    def cache_write(self, block: str, *, buffer: str, scope: str) -> ScheduleBuilder:
        return self._apply("cache_write", block=block, buffer=buffer, scope=scope)

    def reverse_compute_at(self, block: str, *, loop: str) -> ScheduleBuilder:
        return self._apply("reverse_compute_at", block=block, loop=loop)

    def decompose_reduction(self, block: str, *, loop: str) -> ScheduleBuilder:
        return self._apply("decompose_reduction", block=block, loop=loop)

    def prefetch(self, block: str, *, buffer: str, loop: str, distance: int) -> ScheduleBuilder:
        return self._apply("prefetch", block=block, buffer=buffer, loop=loop, distance=distance)
