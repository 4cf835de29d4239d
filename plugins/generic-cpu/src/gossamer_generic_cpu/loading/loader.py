"""Object code into the memory of this process."""

from __future__ import annotations

from gossamer_generic_cpu.loading.elf import place


def load_object(code: bytes, symbol: str) -> tuple[int, object]:
    """The address of a symbol, and the object that keeps the code loaded.

    `ArgumentError` (`generic_cpu.object`) where the bytes are no object code of this machine.
    """
    address = place(code, symbol)
    if address is not None:
        return address, None
    from gossamer_generic_cpu.loading.linker import link_object  # LLVM, only for what needs it

    return link_object(code, symbol)
