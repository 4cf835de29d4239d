"""The JSON manifest of an exported kernel: all that a caller in any language needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from gossamer_backend.artifact import Artifact
from gossamer_backend.export.spelling import (
    ExportedParameter,
    Spellings,
    element_type,
    exported_parameters,
    expr_text,
    extent_texts,
    fact_as_data,
    parameters_by_buffer,
    scalar_type_of,
)
from gossamer_ir.interchange.kernel_abi import (
    ABI_VERSION,
    INTERRUPTED,
    OK,
    OUT_OF_BOUNDS,
    OUT_OF_MEMORY,
    WORKSPACE_FIELDS,
)
from gossamer_ir.interchange.records import ScalarParam, Signature

MANIFEST_FORMAT = 1
"""The version of the manifest's format; it grows with changes that readers must follow."""


def manifest_text(
    artifact: Artifact,
    *,
    symbol: str,
    files: Mapping[str, tuple[str, bytes]],
    entries: Mapping[str, Any],
    versions: Mapping[str, str],
) -> str:
    """Return the manifest. `files` are name and contents by role (`object`, `header`, ...); the manifest
    holds their checksums, so that readers can check that files belong together. `entries` are those about
    this kind of code."""
    signature = artifact.signature
    names = parameters_by_buffer(signature)
    manifest = {
        "gossamer_export": MANIFEST_FORMAT,
        "symbol": symbol,
        "entry": signature.entry,
        "files": {role: _file_record(*file) for role, file in files.items()},
        "parameters": [_parameter_record(param, names) for param in exported_parameters(signature)],
        "scratch_bytes": _scratch_bytes(signature, names),
        "bounds_checked_buffers": list(artifact.bounds_checked_buffers),
        "target": artifact.target,
        "backend": {"name": artifact.backend, "version": artifact.backend_version},
        "versions": dict(sorted(versions.items())),
        **entries,
    }
    return json.dumps(manifest, indent=2) + "\n"


def native_entries(artifact: Artifact, requires: Sequence[str]) -> dict[str, Any]:
    """Return the entries about an object file that requires symbols of others."""
    return {
        "abi_version": ABI_VERSION,
        "workspace": _WORKSPACE,
        "returns": {"c_type": "int64_t", "statuses": _STATUSES},
        "requires": list(requires),
        "machine": {key: artifact.metadatum(key) for key in ("triple", "cpu", "features")},
    }


_STATUSES = {
    "OK": OK,
    "OUT_OF_BOUNDS": OUT_OF_BOUNDS,
    "OUT_OF_MEMORY": OUT_OF_MEMORY,
    "INTERRUPTED": INTERRUPTED,
}
_WORKSPACE = {
    "c_type": "struct gossamer_workspace *",
    "fields": [{"name": field.name, "c_type": field.in_c("")} for field in WORKSPACE_FIELDS],
}


def _scratch_bytes(signature: Signature, names: Spellings) -> str | None:
    """Return the bytes that each call needs besides its arrays; None if the kernel allocates its own."""
    scratch = signature.scratch
    return None if scratch is None else expr_text(scratch, names)


def _file_record(name: str, contents: bytes) -> dict[str, str]:
    return {"name": name, "sha256": hashlib.sha256(contents).hexdigest()}


def _parameter_record(param: ExportedParameter, names: Spellings) -> dict[str, Any]:
    if isinstance(param, ScalarParam):
        return {
            "name": param.name,
            "kind": "scalar",
            "dtype": param.dtype,
            "c_type": scalar_type_of(param.dtype),
        }
    return {
        "name": param.name,
        "kind": "array",
        "dtype": param.dtype,
        "c_type": f"{element_type(param.dtype)} *",
        "space": param.space,
        "shape": extent_texts(param, names),
        "read": param.is_read,
        "written": param.is_written,
        "facts": [fact_as_data(fact, names) for fact in param.facts],
    }
