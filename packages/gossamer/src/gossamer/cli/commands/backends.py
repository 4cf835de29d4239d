"""`gossamer backends`: the installed backends, and whether they work on this machine."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.targets.resolve_target import registry
from gossamer_backend import BackendInfo, ExtensionInfo
from gossamer_backend.internal_api import unattached_message


def backends() -> None:
    """List the backends that are installed.

    For each, print its version, suggested targets, whether it is usable on this machine or why not, and the
    plugins that extend it; finally, extensions of backends that are not installed.
    """
    infos = registry.backend_infos()
    print("\n\n".join(map(_describe, infos)) if infos else "no backend is installed")
    for point, similar in registry.unattached_extensions().items():
        print(f"\n{unattached_message(point, similar)}")


def _describe(backend: BackendInfo) -> str:
    """
    >>> added = (ExtensionInfo("fast-rows", "acme"), ExtensionInfo("old", "acme", "no license"))
    >>> toy = BackendInfo("toy", "gossamer-toy", "1.0", ("toy",), is_usable=True, extensions=added)
    >>> print(_describe(toy))
    toy
      usable      yes
      version     1.0
      targets     toy
      extensions  fast-rows of acme
                  old of acme, which is broken: no license
    """
    usable = "yes" if backend.is_usable else f"no: {backend.reason}"
    rows = [("usable", usable), ("version", backend.version or "unknown")]
    rows += _label_rows("targets", backend.targets)
    rows += _label_rows("extensions", map(_describe_extension, backend.extensions))
    width = max(len(label) for label, _ in rows)
    return "\n".join([backend.name, *(f"  {label:<{width}}  {text}" for label, text in rows)])


def _describe_extension(extension: ExtensionInfo) -> str:
    broken = f", which is broken: {extension.reason}" if extension.reason is not None else ""
    return f"{extension.name} of {extension.distribution}{broken}"


def _label_rows(label: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return rows of texts, the first with the label."""
    return [("" if number else label, text) for number, text in enumerate(texts)]
