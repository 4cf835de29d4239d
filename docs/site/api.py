"""The pages of the API reference, derived from the source tree: no module is listed by hand.

A distribution has a page for the names that its package exports, and each folder of modules has a
page. Folders and modules whose names begin with an underscore have none. Nothing is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MODULE = "::: {name}\n"
EXPORTS = """\
# {name}

::: {name}
    options:
      members: false
      show_root_heading: false

## Exported names

Each of them is imported from `{name}`.

::: {name}
    options:
      show_root_heading: false
      show_root_toc_entry: false
      show_docstring_description: false
      members: {members}
      heading_level: 2
"""


def source_folders(root: Path) -> list[Path]:
    """Return the `src` folders of all distributions."""
    return sorted(path.parent / "src" for path in root.glob("p*s/*/pyproject.toml"))


def packages(root: Path) -> list[Path]:
    """Return the folder of the package that each distribution installs."""
    return [
        path.parent for src in source_folders(root) for path in sorted(src.glob("*/__init__.py"))
    ]


def pages(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each page, in the order of the navigation."""
    for package in packages(root):
        names = exported_names(package)
        if names:
            yield f"api/{package.name}/README.md", EXPORTS.format(name=package.name, members=names)
        for folder in [package, *sorted(path for path in package.rglob("*") if is_package(path))]:
            name = ".".join(folder.relative_to(package.parent).parts)
            if not any(part.startswith("_") for part in name.split(".")):
                yield f"api/{package.name}/{name}.md", folder_page(folder, name)


def is_package(folder: Path) -> bool:
    """Return whether modules of a folder can be imported."""
    return (folder / "__init__.py").is_file()


def exported_names(package: Path) -> list[str]:
    """Return the names in `__all__` of a package, without its version; those that its modules re-export,
    where there is no such list."""
    path = package / "__init__.py"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [name for name in ast.literal_eval(node.value) if not name.startswith("_")]
    return list(re_exported(path))


def re_exported(path: Path) -> Iterator[str]:
    """Yield the names that a file imports under their own names (`as`), in its order, and all those of which
    it imports everything."""
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            if alias.name == "*":
                _, *parts = (node.module or "").split(".")
                yield from re_exported(path.parent.joinpath(*parts).with_suffix(".py"))
            elif alias.name == alias.asname:
                yield alias.name


def folder_page(folder: Path, name: str) -> str:
    """Return a heading, the folder's own documentation, then its modules."""
    modules = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    sections = [MODULE.format(name=f"{name}.{module}") for module in modules]
    return "\n".join([f"# Modules of {name}\n", MODULE.format(name=name), *sections])
