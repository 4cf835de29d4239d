"""An emulated process that runs the kernels of one machine: the other side of `driver/main.c`."""

from __future__ import annotations

import atexit
import os
import signal
import struct
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from gossamer_emulation.driver.program import driver
from gossamer_emulation.emulated_machine import EmulatedMachine
from gossamer_ir.errors import InternalError

_START, _LOAD, _CALL = range(3)
_INTEGER, _FLOAT, _ARRAY, _WRITTEN_ARRAY = range(4)
_WORD = struct.Struct("<q")

MAX_STACK_ARGUMENTS = 64
"""The most parameters of a kernel that are not in registers: `ON_STACK` of the driver."""


class EmulatedArray(NamedTuple):
    """The memory of an array, and whether the kernel writes to it."""

    memory: memoryview
    is_written: bool


class EmulatedFloat(NamedTuple):
    """A float as the bits of a register. A float32 is the lower half, and the bits above it are ones, as
    RISC-V requires."""

    bits: int


EmulatedArgument: TypeAlias = int | EmulatedFloat | EmulatedArray


class CallResult(NamedTuple):
    """The status of a call and the index of the buffer whose bounds check failed."""

    status: int
    failed_buffer: int


class Emulator:
    """Runs object code in an emulated process, which starts with the first call.

    If the process ends, the call that it was running raises `InternalError`, and the next call starts another
    one. Any number of threads may use an emulator; it runs one call at a time. A forked child starts a
    process of its own.
    """

    def __init__(self, machine: EmulatedMachine) -> None:
        self.machine = machine
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: IO[bytes] | None = None
        self._kernels: dict[bytes, int] = {}

    def call(self, code: bytes, arguments: Sequence[EmulatedArgument]) -> CallResult:
        """Run the kernel in an object file; the arrays that it writes are changed."""
        with self._lock:
            try:
                return self._call(self._kernel(code), arguments)
            except (EOFError, BrokenPipeError):
                raise self._death_error() from None
            except BaseException:
                # An interrupt may come amid an answer, which the next call would take for its own.
                self._stop()
                raise

    def forget(self) -> None:
        """Forget a process that belongs to the parent of this one."""
        self._reset()

    def close(self) -> None:
        """End the process; the next call starts another one."""
        with self._lock:
            self._stop()

    def _call(self, kernel: int, arguments: Sequence[EmulatedArgument]) -> CallResult:
        arrays = [argument for argument in arguments if isinstance(argument, EmulatedArray)]
        words = [word for argument in arguments for word in _encode_argument(argument)]
        self._send_words(_CALL, kernel, len(arguments), *words)
        for array in arrays:
            self._input.write(array.memory)
        self._input.flush()
        result = CallResult(self._receive_word(), self._receive_word())
        for array in arrays:
            if array.is_written:
                self._receive(array.memory)
        return result

    def _kernel(self, code: bytes) -> int:
        """Return the number of a kernel in the process, to which it is sent once."""
        if self._process is None:
            self._start()
        if code not in self._kernels:
            self._send_words(_LOAD, len(code))
            self._input.write(code)
            self._input.flush()
            number = self._receive_word()
            if number < 0:
                text = memoryview(bytearray(self._receive_word()))
                self._receive(text)
                raise InternalError(
                    f"The emulated process cannot load a kernel: {str(text, 'utf-8')}."
                )
            self._kernels[code] = number
        return self._kernels[code]

    def _start(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            executable = Path(directory) / "driver"
            executable.write_bytes(driver(self.machine.architecture))
            executable.chmod(0o700)
            self._messages = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `_stop`)
            self._process = subprocess.Popen(
                [self.machine.architecture.emulator, "-cpu", self.machine.cpu, str(executable)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
            )
            self._kernels = {}
            # Answered once the emulator has read the file, which may be deleted then.
            self._send_words(_START)
            self._input.flush()
            self._receive_word()

    @property
    def _input(self) -> IO[bytes]:
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin

    def _send_words(self, *words: int) -> None:
        self._input.write(struct.pack(f"<{len(words)}q", *words))

    def _receive_word(self) -> int:
        word = bytearray(_WORD.size)
        self._receive(memoryview(word))
        return int(_WORD.unpack(word)[0])

    def _receive(self, memory: memoryview) -> None:
        assert self._process is not None
        output: Any = self._process.stdout
        if output.readinto(memory) != memory.nbytes:
            raise EOFError

    def _death_error(self) -> InternalError:
        process, messages = self._process, self._messages
        assert process is not None
        assert messages is not None
        code = process.wait()
        messages.seek(0)
        said = messages.read().decode(errors="replace").strip().splitlines()
        self._stop()
        how = signal.strsignal(-code) if code < 0 else f"exit code {code}"
        return InternalError(
            f"The emulated process ended in a kernel ({how}): {said[-1] if said else 'no message'}."
        )

    def _stop(self) -> None:
        process, messages = self._process, self._messages
        self._process, self._messages, self._kernels = None, None, {}
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                _close(pipe)
        if messages is not None:
            messages.close()


def _close(pipe: IO[bytes] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except BrokenPipeError:  # what is left in the buffer of a process that has ended
        pass


def _encode_argument(argument: EmulatedArgument) -> tuple[int, int]:
    """Return the kind and the value of an argument."""
    match argument:
        case EmulatedArray(memory, is_written):
            return _WRITTEN_ARRAY if is_written else _ARRAY, memory.nbytes
        case EmulatedFloat(bits):
            return _FLOAT, bits
        case integer:
            return _INTEGER, integer


@cache
def emulator_of(machine: EmulatedMachine) -> Emulator:
    """Return the emulator of this process for a machine."""
    emulator = Emulator(machine)
    os.register_at_fork(after_in_child=emulator.forget)
    atexit.register(emulator.close)
    return emulator
