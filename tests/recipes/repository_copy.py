"""A copy of the repository with one package, in which a recipe is followed and its generators are run.

Processes of the copy import that package from it, and everything else from this repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SCRIPT_EXPORTS = "packages/ir/src/gossamer_ir/script/__init__.py"
"""A file that the generator of exports reads, whichever package is copied."""

COMMAND_LINE = "import sys; from gossamer.cli import main; sys.exit(main())"


@dataclass(frozen=True)
class RepositoryCopy:
    folder: Path
    package: str
    """The folder of the copied package in `packages`."""

    @property
    def source(self) -> Path:
        """The folder of the modules of the package."""
        return self.folder / "packages" / self.package / "src" / f"gossamer_{self.package}"

    def write(self, name: str, text: str) -> None:
        """Write a module of the package."""
        (self.source / name).write_text(text)

    def insert(self, name: str, line: str, *, after: str) -> None:
        """Insert a line into a module of the package, after the only one that ends in a text."""
        lines = (self.source / name).read_text().splitlines(keepends=True)
        (place,) = (number for number, other in enumerate(lines) if other.rstrip().endswith(after))
        lines.insert(place + 1, line)
        self.write(name, "".join(lines))

    def generate(self, *names: str) -> list[str]:
        """Run generators, and return the files of the package that they have changed."""
        output = self.run("-m", "tools.generate", *names)
        return [line.partition(": ")[2] for line in output.splitlines()]

    def gossamer(self, *arguments: str) -> str:
        """Run a command of gossamer, and return its output."""
        return self.run("-c", COMMAND_LINE, *arguments)

    def run(self, *arguments: str) -> str:
        """Run Python, and return its output."""
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self.source.parent}{os.pathsep}{self.folder}",
            # Modules are compiled once for all processes, also where others write no bytecode.
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": f"{self.folder / 'bytecode'}",
            "GOSSAMER_CACHE_DIR": f"{self.folder / 'kernels'}",
        }
        result = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout


def copy_repository(root: Path, folder: Path, *, package: str) -> RepositoryCopy:
    """Return a copy in an empty folder, with the generators, the documents and one package."""
    for name in ("tools", "docs", f"packages/{package}"):
        shutil.copytree(root / name, folder / name)
    (folder / SCRIPT_EXPORTS).parent.mkdir(parents=True)
    shutil.copy2(root / SCRIPT_EXPORTS, folder / SCRIPT_EXPORTS)
    return RepositoryCopy(folder, package)
