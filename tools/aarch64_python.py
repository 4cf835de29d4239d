"""A Python of AArch64 in a folder, which `qemu-aarch64-static` runs on machines of other architectures.

    python -m tools.aarch64_python FOLDER REQUIREMENT ...

Debian's packages come through the sources that `apt-get` is configured with, into a state of their own: the
packages of this machine stay as they are, and no rights are needed. Without a source that has arm64, the exit
code is 3. Requirements are what pip takes: names with versions, or wheels. `FOLDER/usr/bin/python` runs
Python; the variable `QEMU_CPU` chooses the CPU.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

EMULATOR = "qemu-aarch64-static"
_DEBIAN_PACKAGES = ("python3", "libgomp1", "libstdc++6")
_PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")
_NEVER_IMPORTED = re.compile(r"/(tests|rich|scipy/(?!_lib|sparse)\w+)/")
"""Folders whose modules are not compiled, since no test imports them."""
_NO_SOURCE = 3
"""The exit code without a source of Debian's packages for arm64."""
_UV_PLATFORM = "aarch64-manylinux_2_28"

_DEFAULT_CPU = "max,sve-max-vq=2,sve-default-vector-length=32"
"""Vectors of 256 bits, as those of a Neoverse V1."""

_LAUNCHER = """#!/bin/sh
export QEMU_CPU="${{QEMU_CPU:-{cpu}}}"
# Python finds its library beside the name that it is started by, and starts others by that name.
exec {emulator} -L {root} -0 "$0" {python} "$@"
"""


def make_python(root: Path, requirements: Sequence[str]) -> Path:
    """Make the folder, as far as it is not there, and return the command that runs its Python."""
    if not (root / "usr/bin/python3").exists():
        unpack_debian_packages(root)
    python = (root / "usr/bin/python3").resolve()
    version = python.name.removeprefix("python")
    packages = root / "usr/local/lib" / python.name / "dist-packages"
    installed, wanted = packages / "requirements.txt", "\n".join(requirements)
    if not installed.exists() or installed.read_text() != wanted:
        shutil.rmtree(packages, ignore_errors=True)
        install_wheels(packages, requirements, version)
        compile_modules(root / "usr/lib" / python.name, packages, version=version)
        installed.write_text(wanted)
    launcher = root / "usr/bin/python"
    launcher.unlink(missing_ok=True)
    text = _LAUNCHER.format(cpu=_DEFAULT_CPU, emulator=EMULATOR, root=root, python=python)
    launcher.write_text(text)
    launcher.chmod(0o755)
    return launcher


def unpack_debian_packages(root: Path) -> None:
    """Unpack Python and the libraries that it needs, as the state of an empty system would install them."""
    state = root / "var/lib/apt"
    for folder in ("lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    settings: dict[str, str | Path] = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Install-Recommends": "false",
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::Cache": state,
    }
    apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in settings.items())]
    try:
        run_checked([*apt, "update"])
        run_checked([*apt, "install", "--yes", "--download-only", *_DEBIAN_PACKAGES])
    except subprocess.CalledProcessError:
        sys.exit(_NO_SOURCE)
    # Packages of different releases put libraries into either of two folders, which are one.
    for name in ("bin", "lib", "sbin"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for package in sorted((state / "archives").glob("*.deb")):
        contents = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True
        ).stdout
        run_checked(["tar", "-x", "--keep-directory-symlink", "-C", root], stdin=contents)


def install_wheels(folder: Path, requirements: Sequence[str], version: str) -> None:
    """Install wheels for AArch64 and a version of Python into a folder: by uv, if this Python has it, which
    takes a fifth of the time of pip."""
    has_uv = importlib.util.find_spec("uv") is not None
    platforms = [option for name in _PLATFORMS for option in ("--platform", name)]
    chosen = ("uv", "pip") if has_uv else ("pip",)
    options = ("--python-platform", _UV_PLATFORM) if has_uv else ("--no-compile", *platforms)
    install = [sys.executable, "-m", *chosen, "install", "--quiet", "--only-binary=:all:", *options]
    run_checked([*install, "--target", folder, "--python-version", version, *requirements])


def compile_modules(*folders: Path, version: str) -> None:
    """Compile the modules that tests import, if this Python has the version of the emulated one, which
    would take ten times as long."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        for folder in folders:
            compileall.compile_dir(folder, quiet=2, rx=_NEVER_IMPORTED)


def run_checked(command: Sequence[str | Path], *, stdin: bytes | None = None) -> None:
    """Run a command with what it is given as input."""
    subprocess.run(command, check=True, input=stdin)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the folder of the command line, and print the command that runs its Python."""
    parser = argparse.ArgumentParser(prog="python -m tools.aarch64_python", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("requirements", nargs="*")
    options = parser.parse_args(arguments)
    print(make_python(options.folder.resolve(), options.requirements))


if __name__ == "__main__":
    main()
