"""Compiled kernels as files for programs without Python: object, C header, manifest, library."""

from __future__ import annotations

from gossamer_backend.export.exported_files import Exported, export_artifact

__all__ = ["Exported", "export_artifact"]
