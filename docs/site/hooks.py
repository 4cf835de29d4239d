"""Hooks of MkDocs that make the site from the repository; see mkdocs.yml.

Every page is known by its path in the repository, so that links between Markdown files mean on the
site what they mean there. A link to a folder leads to its README.md, and a linked file that is not a
page is copied to the site.
"""

from __future__ import annotations

import importlib.util
import os
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PLACES = (
    "*.md",
    "packages/*/README.md",
    "plugins/*/README.md",
    "benchmarks/*.md",
    "examples/*.md",
    "benchmarks/results/*.*",
)
"""Pages and pictures outside of docs/."""
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(?=[)#])")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def beside(name: str) -> ModuleType:
    """Return the module of this folder with a name: the folder is not a package."""
    spec = importlib.util.spec_from_file_location(
        f"site_{name}", Path(__file__).parent / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


api = beside("api")
errors = beside("errors")
notebooks = beside("notebooks")


def generated_pages() -> dict[str, str]:
    """Return the pages that no file holds, by their paths."""
    pages = dict(api.pages(ROOT))
    pages["docs/errors.md"] = errors.page(ROOT)
    return pages


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of folders into the navigation."""
    paths = [*generated_pages(), *(path.relative_to(ROOT).as_posix() for path in sources())]
    config.nav = expand_folders(config.nav or [], paths)
    return config


def sources() -> Iterator[Path]:
    """Yield the files of the repository that are pages or pictures of the site."""
    for place in PLACES:
        yield from sorted(ROOT.glob(place))
    for path in sorted(ROOT.glob("docs/**/*")):
        if path.suffix in {".md", ".svg", ".css"}:
            yield path


def expand_folders(nav: list[Any], paths: list[str]) -> list[Any]:
    """Return the navigation with the pages of a folder in place of its name, the index first."""
    items: list[Any] = []
    for item in nav:
        if isinstance(item, dict):
            items += [{title: expand_folders(below, paths)} for title, below in item.items()]
        elif item.endswith("/"):
            items += list_pages(item, paths)
        else:
            items.append(item)
    return items


def list_pages(folder: str, paths: list[str]) -> list[Any]:
    """Return the pages right in a folder, then a section for each folder in it that has more than one."""
    below = [path for path in paths if path.startswith(folder) and path.endswith(".md")]
    here = [path for path in below if "/" not in path.removeprefix(folder)]
    items: list[Any] = sorted(here, key=lambda path: (not path.endswith("README.md"), path))
    for name in dict.fromkeys(path.removeprefix(folder).split("/")[0] for path in below):
        pages = [path for path in below if path.startswith(f"{folder}{name}/")]
        if pages:
            items += pages if len(pages) == 1 else [{name: list_pages(f"{folder}{name}/", paths)}]
    return items


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Return the pages of the repository, the generated ones and the notebooks, in place of what MkDocs
    found."""
    for file in [file for file in files if not file.src_uri.startswith("assets/")]:
        files.remove(file)
    for path in sources():
        files.append(file_of(path, config))
    for place, text in [*generated_pages().items(), *notebooks.notebooks(ROOT)]:
        files.append(place_file(File.generated(config, place, content=text)))
    return files


def file_of(path: Path, config: MkDocsConfig) -> File:
    """Return a file of the repository."""
    place = path.relative_to(ROOT).as_posix()
    return place_file(File(place, str(ROOT), config.site_dir, use_directory_urls=False))


def place_file(file: File) -> File:
    """Return the file where the site has it: what is in docs/ stands at the top."""
    file.dest_uri = file.dest_uri.removeprefix("docs/")
    return file


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to folders and to files that are not pages lead somewhere."""
    folder = posixpath.dirname(page.file.src_uri)

    def resolve_link(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[1]))
        if (ROOT / target).is_dir():
            return os.path.join(link[1], "README.md")
        if files.get_file_from_path(target) is None and (ROOT / target).is_file():
            files.append(file_of(ROOT / target, config))
        return link[1]

    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(resolve_link, part) for part in parts[::2]]
    return "".join(parts) + link_to_notebook(page)


def link_to_notebook(page: Page) -> str:
    """Return the last line of a tutorial."""
    path = ROOT / page.file.src_uri
    if path not in notebooks.tutorials(ROOT):
        return ""
    target = posixpath.relpath(notebooks.place_of(path), posixpath.dirname(page.file.src_uri))
    return f"\n\n[Download this page as a Jupyter notebook]({target})\n"
