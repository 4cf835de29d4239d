"""Translates blocks: binds and checks their iterators, and hoists their init to an enclosing loop."""

from __future__ import annotations

from gossamer_ir.interpret.frame import Exec, Frame
from gossamer_ir.interpret.statements.inits import bind_iters, domain_checks, hoist_init
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import Block


def block(node: Block, translator: Translator) -> Exec:
    """Return a block as a function of the frame; its init, if hoisted, is added to the loop it runs
    before."""
    bind, check = (
        bind_iters(node.iters, translator),
        domain_checks(node.iters, node.name, translator),
    )
    predicate = translator.optional(node.predicate)
    init = hoist_init(node, translator) if node.init else None
    (around, translator.around), (whiles, translator.whiles) = (
        (translator.around, []),
        (translator.whiles, []),
    )
    body = translator.body(node.body)
    translator.around, translator.whiles = around, whiles

    def run(frame: Frame) -> None:
        bind(frame)
        if init is not None:
            init(frame)
        if predicate is None or predicate(frame):
            check(frame)
            body(frame)

    return run
