"""Load object code into the memory of this process."""

from __future__ import annotations

from gossamer_host_runtime.loading.elf import place_code


def load_object(code: bytes, symbol: str) -> tuple[int, object]:
    """Return the address of a symbol, and the object that keeps the code loaded.

    `ArgumentError` (`host_runtime.object`) if the bytes are not object code for this machine.
    """
    # Our own loader first: it needs no import of LLVM, which takes longer than all else.
    address = place_code(code, symbol)
    if address is not None:
        return address, None
    from gossamer_host_runtime.loading.linker import link_object  # imports LLVM

    return link_object(code, symbol)
