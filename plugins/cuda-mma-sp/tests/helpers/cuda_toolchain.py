"""Programs of the CUDA toolchain, from PyPI or from a toolkit of this machine."""

import shutil
from pathlib import Path


def toolchain_program(name):
    """Return the path of a program such as `ptxas`; None if there is none."""
    try:
        import nvidia
    except ImportError:
        return shutil.which(name)
    paths = (path for root in nvidia.__path__ for path in Path(root).rglob(f"bin/{name}"))
    return next(map(str, paths), shutil.which(name))
