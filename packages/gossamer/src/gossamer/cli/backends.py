"""`gossamer backends`: the installed backends, and whether they work on this machine."""

from __future__ import annotations

from gossamer.resolve_target import registry
from gossamer_backend import BackendInfo


def backends() -> None:
    """List the backends that are installed.

    For each, print its version, suggested targets, and whether it is usable on this machine or why not.
    """
    infos = registry.backend_infos()
    print("\n\n".join(map(_describe, infos)) if infos else "no backend is installed")


def _describe(backend: BackendInfo) -> str:
    """
    >>> print(_describe(BackendInfo("toy", "gossamer-toy", "1.0", ("toy",), usable=True)))
    toy
      usable   yes
      version  1.0
      targets  toy
    """
    usable = "yes" if backend.usable else f"no: {backend.reason}"
    lines = [backend.name, f"  usable   {usable}", f"  version  {backend.version or 'unknown'}"]
    return "\n".join([*lines, *_targets(backend.targets)])


def _targets(targets: tuple[str, ...]) -> list[str]:
    names = ("targets", *("" for _ in targets[1:]))
    return [f"  {name:<7}  {target}" for name, target in zip(names, targets, strict=False)]
