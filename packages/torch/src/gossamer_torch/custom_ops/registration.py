"""Registration of operators with torch: the kernel, the fake for tracing, the gradients and the rule of vmap.

torch computes the gradients of a registered operator itself, also in compiled graphs, but not in transforms
of `torch.func`. These transform a `torch.autograd.Function` that calls the operator. A call that nothing
follows runs the kernel: torch's way to it takes a tenth of a millisecond, as long as a product of a small
graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import torch

from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_support.as_tuple import as_tuple
from gossamer_torch.checks import forward_mode_error
from gossamer_torch.func_transforms import are_calls_observed, has_func_transforms, is_wrapped
from gossamer_torch.torch_threads import use_torch_threads

# Once, when the first operator is registered: before any kernel runs for torch.
use_torch_threads()

P = ParamSpec("P")
R = TypeVar("R")
GradientsByName: TypeAlias = Mapping[str, torch.Tensor]
"""Gradients by the names of inputs."""


class GradientRule(NamedTuple):
    """The computation of gradients: the function `gradients` takes the gradients of all results, the names of
    the inputs whose gradients are needed, and by name the inputs and results that it reads. Only these are
    kept for it."""

    read: Sequence[str]
    gradients: Callable[..., GradientsByName]


class OperatorDefinition(NamedTuple):
    """An operator for torch."""

    name: str
    schema: str
    inputs: Sequence[str]
    results: Sequence[str]
    kernel: Callable[..., Any]
    device_kernel: Callable[..., Any] | None
    """The kernel for tensors on a GPU."""
    new_results: Callable[..., Any]
    """A function of the same arguments that returns new tensors for the results."""
    rule: GradientRule | None
    """The rule for gradients."""


def torch_operator(
    name: str,
    *,
    new_result: Callable[..., Any],
    gradients: Callable[..., GradientsByName] | None = None,
    device_kernel: Callable[..., Any] | None = None,
    runs_anywhere: bool = False,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that registers a kernel as the operator `gossamer::name` of torch. The schema is
    made from the annotations of the kernel, which alone declares all inputs.

    `device_kernel` is the kernel for tensors on a GPU; a kernel that `runs_anywhere` is that, too. Without
    one, such tensors are refused by name (`operand.device`).

    `new_result` takes those inputs that it reads, by name, and returns a new tensor of the shape and the
    dtype of the result. `gradients` takes the gradient of the result, the names of the inputs whose gradients
    are needed, and those inputs that it reads, by name, or `result`. It returns gradients by name.

    >>> def new_double(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.empty_like(x)
    >>> def gradients_of_double(gradient: torch.Tensor, needed: frozenset[str]) -> GradientsByName:
    ...     return {"x": 2 * gradient}
    >>> @torch_operator("double_of_docs", new_result=new_double, gradients=gradients_of_double)
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     return 2 * x
    >>> torch.func.grad(lambda x: double(x).sum())(torch.ones(2))
    tensor([2., 2.])
    """

    def register(kernel: Callable[P, R]) -> Callable[P, R]:
        rule = None
        if gradients is not None:
            _, _, *read = inspect.signature(gradients).parameters
            rule = GradientRule(read, gradients)
        # torch.func and vmap pass positional arguments only.
        schema = torch.library.infer_schema(kernel, mutates_args=()).replace("*, ", "")
        inputs = tuple(inspect.signature(kernel).parameters)

        def by_name(function: Callable[..., Any]) -> Callable[..., Any]:
            read = _names_read(function, inputs)
            places = [(name, inputs.index(name)) for name in read]
            return lambda *values: function(**{name: values[place] for name, place in places})

        on_device = kernel if runs_anywhere else device_kernel
        call = register_operator(
            OperatorDefinition(
                name,
                schema,
                inputs,
                ("result",),
                by_name(kernel),
                None if on_device is None else by_name(on_device),
                by_name(new_result),
                rule,
            )
        )

        def call_by_name(*values: P.args, **others: P.kwargs) -> R:
            # Keyword-only parameters come last in a signature.
            result: R = call(*values, *(others[name] for name in inputs[len(values) :]))
            return result

        return call_by_name

    return register


def _names_read(function: Callable[..., Any], inputs: Sequence[str]) -> list[str]:
    """Return the names of the inputs that a function takes; raise `InternalError` for a parameter that is
    none of them.

    >>> _names_read(lambda y: y, ("x", "y")), _names_read(lambda **inputs: inputs, ("x", "y"))
    (['y'], ['x', 'y'])
    """
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return [*inputs]
    names = [parameter.name for parameter in parameters]
    wrong = [name for name in names if name not in inputs]
    if wrong:
        raise InternalError(f"'{wrong[0]}' is not an input of the operator: {', '.join(inputs)}")
    return names


def new_like(name: str) -> Callable[..., torch.Tensor]:
    """Return a function `new_result` for results of the shape and the dtype of one of the inputs."""

    def new_result(**inputs: Any) -> torch.Tensor:
        like: torch.Tensor = inputs[name]
        return torch.empty(like.shape, dtype=like.dtype, device=like.device)

    return new_result


def register_operator(definition: OperatorDefinition) -> Callable[..., Any]:
    """Register an operator with torch, and return the function that calls it."""
    registered = torch.library.custom_op(
        f"gossamer::{definition.name}",
        definition.kernel,
        mutates_args=(),
        device_types="cpu",
        schema=definition.schema,
    )
    on_device = definition.device_kernel or _refusing_kernel(definition)
    registered.register_kernel("cuda", on_device)
    registered.register_fake(definition.new_results)
    registered.register_vmap(_vmap_rule(registered, definition))
    if definition.rule is None:
        return _unless_observed(definition.kernel, registered)
    save, backward = _autograd(definition, definition.rule)
    registered.register_autograd(backward, setup_context=save)
    members = {
        "generate_vmap_rule": True,
        "forward": staticmethod(lambda *inputs: registered(*inputs)),
        "setup_context": staticmethod(save),
        "backward": staticmethod(backward),
        "jvp": staticmethod(_refuse_forward_mode),
    }
    transformed: Any = type(definition.name, (torch.autograd.Function,), members)

    def call_observed(*inputs: Any) -> Any:
        # To call the function always would add a fifth to the time of a call.
        if not torch.compiler.is_compiling() and has_func_transforms():
            return transformed.apply(*inputs)
        return registered(*inputs)

    return _unless_observed(_with_gradients(definition, save, backward), call_observed)


def _unless_observed(
    direct: Callable[..., Any], observed: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the function that calls the first one, or the second if torch observes the call."""

    def call(*inputs: Any) -> Any:
        if are_calls_observed() or not all(map(is_plain, inputs)):
            return observed(*inputs)
        return direct(*inputs)

    return call


def is_plain(value: Any) -> bool:
    """Return whether a kernel can take an input as it is: a tensor that is not of a subclass or a transform,
    on the CPU and without a lazy negation, or anything else but a symbol.

    >>> is_plain(torch.ones(1)), is_plain(torch.ones(1, device="meta"))
    (True, False)
    """
    if type(value) in _PLAIN_TENSORS:
        return value.is_cpu and not value.is_neg() and not is_wrapped(value)
    return not isinstance(value, _OBSERVED_TYPES)


_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)
_OBSERVED_TYPES = (torch.Tensor, torch.SymInt)


def _with_gradients(
    definition: OperatorDefinition, save: Callable[..., None], backward: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the function that runs the kernel, and if a gradient is needed, saves what that reads."""

    def forward(ctx: Any, *inputs: Any) -> Any:
        output = definition.kernel(*inputs)
        save(ctx, inputs, output)
        return output

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function: Any = type(definition.name, (torch.autograd.Function,), members)

    def call(*inputs: Any) -> Any:
        if torch.is_grad_enabled() and any(map(_requires_grad, inputs)):
            return function.apply(*inputs)
        return definition.kernel(*inputs)

    return call


def _requires_grad(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _refusing_kernel(definition: OperatorDefinition) -> Callable[..., Any]:
    """Return the kernel for tensors on a GPU of an operator that has none."""

    def refuse(*values: Any) -> Any:
        name, tensor = next(
            (name, value)
            for name, value in zip(definition.inputs, values, strict=True)
            if isinstance(value, torch.Tensor) and value.device.type != "cpu"
        )
        raise ArgumentError(
            "operand.device",
            f"'{name}' is on the device '{tensor.device}', and '{definition.name}' has kernels for the CPU "
            "only.",
            hint="Copy its operands with cpu().",
        )

    return refuse


def _refuse_forward_mode(ctx: Any, *tangents: Any) -> Any:
    raise forward_mode_error("An operand")


def _autograd(
    definition: OperatorDefinition, rule: GradientRule
) -> tuple[Callable[..., None], Callable[..., Any]]:
    """Return the functions that save what gradients need, and compute them."""
    names = (*definition.inputs, *definition.results)

    def save(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        results = as_tuple(output)
        values = dict(zip(names, (*inputs, *results), strict=True))
        read = {name: values[name] for name in rule.read}
        ctx.tensors = [name for name, value in read.items() if isinstance(value, torch.Tensor)]
        ctx.others = {name: value for name, value in read.items() if name not in ctx.tensors}
        ctx.save_for_backward(*(read[name] for name in ctx.tensors))

    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        read = {**ctx.others, **dict(zip(ctx.tensors, ctx.saved_tensors, strict=True))}
        flags = zip(definition.inputs, ctx.needs_input_grad, strict=True)
        needed = frozenset(name for name, is_needed in flags if is_needed)
        computed = rule.gradients(*gradients, needed, **read)
        return tuple(computed.get(name) for name in definition.inputs)

    return save, backward


def _vmap_rule(registered: Callable[..., Any], definition: OperatorDefinition) -> Any:
    """Return the rule that calls an operator once for each element of the mapped dimension."""

    def rule(info: Any, dimensions: Sequence[int | None], *inputs: Any) -> tuple[Any, Any]:
        pairs = [*zip(inputs, dimensions, strict=True)]

        def call(function: Callable[..., Any], number: int) -> tuple[torch.Tensor, ...]:
            single = [
                value if dimension is None else value.select(dimension, number)
                for value, dimension in pairs
            ]
            return as_tuple(function(*single))

        results = [call(registered, number) for number in range(info.batch_size)]
        if results:
            stacked = tuple(torch.stack(tensors) for tensors in zip(*results, strict=True))
        else:
            # The shapes of the results are those of a call with one element.
            pairs = [(_with_one(value, dimension), dimension) for value, dimension in pairs]
            stacked = tuple(
                single.new_empty((0, *single.shape)) for single in call(definition.new_results, 0)
            )
        if len(stacked) == 1:
            return stacked[0], 0
        return stacked, (0,) * len(stacked)

    return rule


def _with_one(value: Any, dimension: int | None) -> Any:
    if dimension is None:
        return value
    shape = list(value.shape)
    shape[dimension] = 1
    return value.new_empty(shape)
