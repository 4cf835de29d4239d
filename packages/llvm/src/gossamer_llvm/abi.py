"""The kernel ABI (`gossamer_ir.interchange.kernel_abi`) in LLVM."""

from __future__ import annotations

from gossamer_ir.interchange.kernel_abi import WORKSPACE_FIELDS, workspace_field

WORKSPACE = f"{{ {', '.join('ptr' if field.is_pointer else 'i64' for field in WORKSPACE_FIELDS)} }}"
"""`struct gossamer_workspace`, as a type of LLVM."""


def workspace_address(workspace: str, field: str) -> str:
    """Return the instruction that computes the address of a field of a workspace.

    >>> workspace_address("%w", "failed_buffer")
    'getelementptr inbounds { i64, ptr, i64, ptr }, ptr %w, i32 0, i32 2'
    """
    return (
        f"getelementptr inbounds {WORKSPACE}, ptr {workspace}, i32 0, i32 {workspace_field(field)}"
    )
