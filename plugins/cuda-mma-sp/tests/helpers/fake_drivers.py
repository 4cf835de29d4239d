"""Fixtures' work: fake packages and a fake library in place of those of a machine with a GPU."""

import _ctypes
import atexit
import ctypes
import importlib
import shutil
import subprocess
import sys
import tempfile
import types
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from fake_gpu import FakeGpu, fake_bindings, fake_pycuda

from gossamer_cuda_mma_sp.device.gpu_device import gpu_device

SOURCE = Path(__file__).with_name("fake_libcuda.c")
HANDLER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64)
)


@cache
def build_library():
    """Compile the library, whose name for the loader is libcuda.so.1.

    It is one file in a process, whichever tests use it: the loader finds a library that is loaded already by
    its name, wherever it came from.
    """
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    library = folder / "libcuda.so.1"
    command = ["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", str(SOURCE), "-o"]
    subprocess.run([*command, str(library)], check=True)
    return library


@contextmanager
def loaded_library(gpu):
    """Load the library: the loader finds it by its name from then on."""
    library = ctypes.CDLL(str(build_library()), mode=ctypes.RTLD_GLOBAL)
    handler = HANDLER(gpu.handler)
    library.fake_set_handler(handler)
    try:
        yield
    finally:
        library.fake_set_handler(HANDLER(0))
        _ctypes.dlclose(library._handle)


@contextmanager
def installed_drivers(monkeypatch, *, packages=("pycuda", "cuda-bindings")):
    """A machine with a GPU, its library, and the packages."""
    gpu = FakeGpu()
    gpu_device.cache_clear()
    modules = {"pycuda": None, "cuda": None}
    if "pycuda" in packages:
        modules |= {
            "pycuda": types.ModuleType("pycuda"),
            "pycuda.driver": fake_pycuda(gpu),
        }
    if "cuda-bindings" in packages:
        modules |= {
            "cuda": types.ModuleType("cuda"),
            "cuda.bindings": types.ModuleType("cuda.bindings"),
            "cuda.bindings.driver": fake_bindings(gpu),
        }
    for name, module in modules.items():
        if module is not None:
            module.__spec__ = types.SimpleNamespace(name=name)
        monkeypatch.setitem(sys.modules, name, module)
    with loaded_library(gpu):
        yield gpu
    gpu_device.cache_clear()


@cache
def installed_bindings():
    """Import the package cuda.bindings itself. Return its modules by name, none if it is not installed.

    Python cannot import its compiled modules twice, so they are kept, and the fakes stay where they were.
    """
    fakes = _remove_bindings()
    try:
        importlib.import_module("cuda.bindings.driver")
    except ImportError:
        return {}
    finally:
        modules = _remove_bindings()
        sys.modules.update(fakes)
    return modules


def _remove_bindings():
    names = [name for name in sys.modules if name.partition(".")[0] == "cuda"]
    return {name: sys.modules.pop(name) for name in names}
