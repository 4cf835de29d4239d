"""From names to sites, or an error that lists what exists."""

from __future__ import annotations

from gossamer_ir.nodes import AnyBuffer, Block, For, Function, Iteration, Module
from gossamer_ir.traversal.effects import all_buffers
from gossamer_schedule.cursor.site import Site, name_of, named, sites, statements
from gossamer_schedule.errors import listing, refusal


def find_function(module: Module, primitive: str, *, function: str | None) -> Function:
    """The named function, else the entry."""
    wanted = module.entry if function is None else function
    for found in module.functions:
        if found.name == wanted:
            return found
    names = [found.name for found in module.functions]
    raise refusal(
        f"{primitive}.no_function",
        f"There is no function '{wanted}' to apply {primitive} to.",
        hint=listing("functions", names),
    )


def find_loop(function: Function, primitive: str, *, loop: str) -> Site:
    """The site of a loop."""
    return _find(function, For, loop, code=f"{primitive}.no_loop")


def find_block(function: Function, primitive: str, *, block: str) -> Site:
    """The site of a block."""
    return _find(function, Block, block, code=f"{primitive}.no_block")


def find_iteration(function: Function, primitive: str, *, iteration: str) -> Site:
    """The site of a sparse iteration."""
    return _find(function, Iteration, iteration, code=f"{primitive}.no_iteration")


def find_named(function: Function, primitive: str, *, name: str) -> Site:
    """The site of a loop, block or iteration."""
    found = [site for site in sites(function) if name and name_of(site.node) == name]
    if len(found) == 1:
        return found[0]
    there = "are several statements" if found else "is no loop, block or iteration"
    raise refusal(
        f"{primitive}.no_name",
        f"There {there} '{name}' in '{function.name}'.",
        hint=listing("names", filter(None, map(name_of, statements(function.body)))),
    )


_WORDS: dict[type, str] = {For: "loop", Block: "block", Iteration: "iteration"}
"""What a kind of statement is called."""


def _find(function: Function, kind: type, name: str, *, code: str) -> Site:
    found = named(function, kind, name)
    if len(found) == 1:
        return found[0]
    word = _WORDS[kind]
    every = [node for node in statements(function.body) if isinstance(node, kind)]
    there = f"are several {word}s" if found else f"is no {word}"
    raise refusal(
        code,
        f"There {there} '{name}' in '{function.name}'.",
        hint=listing(f"{word}s", [name_of(node) for node in every]),
    )


def find_buffer(function: Function, primitive: str, *, buffer: str) -> AnyBuffer:
    """A buffer of the function, also one that it allocates."""
    for found in all_buffers(function):
        if found.name == buffer:
            return found
    raise refusal(
        f"{primitive}.no_buffer",
        f"There is no buffer '{buffer}' in '{function.name}'.",
        hint=listing("buffers", [found.name for found in all_buffers(function)]),
    )


def require_stage(module: Module, primitive: str, *, stages: tuple[str, ...]) -> None:
    """Refuses a module of another stage."""
    if module.stage not in stages:
        raise refusal(
            f"{primitive}.stage",
            f"{primitive} applies to the {' or '.join(stages)} stage, and this module is of the "
            f"{module.stage} stage.",
        )


LOOP_STAGES = ("position", "loop")
"""The stages that have loops and blocks."""


def require_serial(site: Site, primitive: str) -> None:
    """Refuses a loop that already has a kind."""
    if site.node.kind != "serial":
        raise refusal(
            f"{primitive}.kind",
            f"Loop '{site.node.var}' is {site.node.kind}, and {primitive} needs a serial loop.",
            hint=f"Apply {primitive} before the loop is made {site.node.kind}.",
        )
