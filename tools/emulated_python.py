"""A Python of AArch64 or RISC-V in a folder, which QEMU runs on machines of other architectures.

    python -m tools.emulated_python ARCHITECTURE FOLDER REQUIREMENT ...

Debian's packages come through the sources that `apt-get` is configured with, into a state of their own: the
packages of this machine stay as they are, and no rights are needed. If no source has those of the
architecture, the exit code is 3. Requirements are what pip takes: names with versions, or wheels. The index
of Python lacks wheels of some packages for RISC-V, where Debian's packages of these names take their place.
`FOLDER/usr/bin/python` runs Python; the variable `QEMU_CPU` chooses the CPU.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_NEVER_IMPORTED = re.compile(r"/(tests|rich|scipy/(?!_lib|sparse)\w+)/")
"""Folders whose modules are not compiled, since no test imports them."""
_NO_SOURCE = 3
"""The exit code without a source of Debian's packages for the architecture."""
_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

_LAUNCHER = """#!/bin/sh
export QEMU_CPU="${{QEMU_CPU:-{cpu}}}"
# Python finds its library beside the name that it is started by, and starts others by that name.
exec {emulator} -L {root} -0 "$0" {python} "$@"
"""


class PythonArchitecture(NamedTuple):
    """An architecture by Debian's name, its emulator, and the CPU that this emulates.

    `wheels` are options of uv and of pip for wheels of the architecture; None if Debian's packages take their
    place. `suite` is the release of Debian, None for that of this machine.
    """

    debian: str
    emulator: str
    cpu: str
    wheels: tuple[Sequence[str], Sequence[str]] | None
    suite: str | None = None


_PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")

ARCHITECTURES = {
    "aarch64": PythonArchitecture(
        debian="arm64",
        emulator="qemu-aarch64-static",
        # Vectors of 256 bits, as those of a Neoverse V1.
        cpu="max,sve-max-vq=2,sve-default-vector-length=32",
        wheels=(
            ("--python-platform", "aarch64-manylinux_2_28"),
            ("--no-compile", *(option for name in _PLATFORMS for option in ("--platform", name))),
        ),
    ),
    "riscv64": PythonArchitecture(
        debian="riscv64",
        emulator="qemu-riscv64-static",
        cpu="rv64,v=true,vext_spec=v1.0,vlen=256,elen=64,Zfh=true",
        wheels=None,
        # The first with llvmlite for RISC-V.
        suite="testing",
    ),
}
"""The architectures by LLVM's names."""


def make_python(architecture: PythonArchitecture, root: Path, requirements: Sequence[str]) -> Path:
    """Make the folder, as far as it is not there, and return the command that runs its Python."""
    names, wheels = _split(architecture, requirements)
    if not (root / "usr/bin/python3").exists():
        unpack_debian_packages(architecture, root, ("python3", "libgomp1", "libstdc++6", *names))
    python = (root / "usr/bin/python3").resolve()
    version = python.name.removeprefix("python")
    packages = root / "usr/local/lib" / python.name / "dist-packages"
    installed, wanted = packages / "requirements.txt", "\n".join(wheels)
    if not installed.exists() or installed.read_text() != wanted:
        shutil.rmtree(packages, ignore_errors=True)
        install_wheels(architecture, packages, wheels, version)
        compile_modules(root / "usr/lib" / python.name, packages, version=version)
        installed.write_text(wanted)
    launcher = root / "usr/bin/python"
    launcher.unlink(missing_ok=True)
    text = _LAUNCHER.format(
        cpu=architecture.cpu, emulator=architecture.emulator, root=root, python=python
    )
    launcher.write_text(text)
    launcher.chmod(0o755)
    return launcher


def _split(
    architecture: PythonArchitecture, requirements: Sequence[str]
) -> tuple[list[str], Sequence[str]]:
    """Return the packages of Debian for requirements, and the requirements that pip installs."""
    if architecture.wheels is not None:
        return [], requirements
    wheels = [each for each in requirements if each.endswith(".whl")]
    names = [re.split("[^a-z0-9-]", each)[0] for each in requirements if each not in wheels]
    return [f"python3-{name}" for name in names], wheels


def unpack_debian_packages(
    architecture: PythonArchitecture, root: Path, packages: Sequence[str]
) -> None:
    """Unpack packages and those that they need, as the state of an empty system would install them."""
    state = root / "var/lib/apt"
    for folder in ("lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    if not any(
        is_downloaded([*_apt(architecture, state), *sources], packages)
        for sources in sources_of(architecture, state)
    ):
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
    # The installation would choose this one of several packages that provide these.
    for library in (*root.glob("usr/lib/*/blas/*.so.3"), *root.glob("usr/lib/*/lapack/*.so.3")):
        link = library.parents[1] / library.name
        link.symlink_to(library.relative_to(link.parent))


def _apt(architecture: PythonArchitecture, state: Path) -> list[str]:
    """Return the command of `apt-get` for an architecture, with a state of its own."""
    settings: dict[str, str | Path] = {
        "APT::Architecture": architecture.debian,
        "APT::Architectures": architecture.debian,
        "APT::Install-Recommends": "false",
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::Cache": state,
    }
    return ["apt-get", "-q", *(f"-o{name}={value}" for name, value in settings.items())]


def sources_of(architecture: PythonArchitecture, state: Path) -> Iterator[list[str]]:
    """Yield options of `apt-get` for sources that may have the packages: those of this machine, or each of
    their addresses with another release."""
    if architecture.suite is None:
        yield []
        return
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Component: main"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    file = state / "sources.list"
    for address in dict.fromkeys(listed.split()):
        file.write_text(f"deb [signed-by={_KEYS}] {address} {architecture.suite} main\n")
        yield [f"-oDir::Etc::sourcelist={file}", "-oDir::Etc::sourceparts=-"]


def is_downloaded(apt: Sequence[str], packages: Sequence[str]) -> bool:
    """Download packages and those that they need; return whether the sources have them."""
    try:
        run_checked([*apt, "update"])
        run_checked([*apt, "install", "--yes", "--download-only", *packages])
    except subprocess.CalledProcessError:
        return False
    return True


def install_wheels(
    architecture: PythonArchitecture, folder: Path, requirements: Sequence[str], version: str
) -> None:
    """Install wheels for an architecture and a version of Python into a folder: by uv, if this Python has it,
    which takes a fifth of the time of pip."""
    has_uv = importlib.util.find_spec("uv") is not None
    chosen = ("uv", "pip") if has_uv else ("pip",)
    for_uv, for_pip = architecture.wheels or (("--no-deps",), ("--no-deps", "--no-compile"))
    options = for_uv if has_uv else for_pip
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
    parser = argparse.ArgumentParser(prog="python -m tools.emulated_python", description=__doc__)
    parser.add_argument("architecture", choices=ARCHITECTURES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("requirements", nargs="*")
    options = parser.parse_args(arguments)
    architecture = ARCHITECTURES[options.architecture]
    print(make_python(architecture, options.folder.resolve(), options.requirements))


if __name__ == "__main__":
    main()
