"""Names for the other distributions of the release, besides the exports of the package.

Plugins, compiled checks and plans of calls. A release pins the versions of its distributions, so these names
may change with each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_backend.arguments.argument_checker import ArgumentValue
    from gossamer_backend.arguments.array_view import ArrayView, address
    from gossamer_backend.arguments.size_equations import to_linear
    from gossamer_backend.arguments.subarray import subarray
    from gossamer_backend.arguments.view_of import view_of
    from gossamer_backend.cache.versions import extension_versions
    from gossamer_backend.call.allocation import new_array
    from gossamer_backend.call.kernel import FixedArguments
    from gossamer_backend.call.native_plan import fixed_arguments
    from gossamer_backend.call.plan_source import function_of_integers
    from gossamer_backend.compiled_checks.array_test import ArrayTest
    from gossamer_backend.compiled_checks.compiled_check import compile_tests
    from gossamer_backend.export import Exported, export_artifact
    from gossamer_backend.registry.extension import Extension
    from gossamer_backend.registry.hookspecs import Pass
    from gossamer_backend.registry.installed_backends import unattached_message
    from gossamer_backend.registry.plugin import Plugin
    from gossamer_backend.registry.validating import ValidatingBackend

_HOMES = {
    "ArgumentValue": "gossamer_backend.arguments.argument_checker",
    "ArrayTest": "gossamer_backend.compiled_checks.array_test",
    "ArrayView": "gossamer_backend.arguments.array_view",
    "Exported": "gossamer_backend.export",
    "Extension": "gossamer_backend.registry.extension",
    "FixedArguments": "gossamer_backend.call.kernel",
    "Pass": "gossamer_backend.registry.hookspecs",
    "Plugin": "gossamer_backend.registry.plugin",
    "ValidatingBackend": "gossamer_backend.registry.validating",
    "address": "gossamer_backend.arguments.array_view",
    "compile_tests": "gossamer_backend.compiled_checks.compiled_check",
    "export_artifact": "gossamer_backend.export",
    "extension_versions": "gossamer_backend.cache.versions",
    "fixed_arguments": "gossamer_backend.call.native_plan",
    "function_of_integers": "gossamer_backend.call.plan_source",
    "new_array": "gossamer_backend.call.allocation",
    "subarray": "gossamer_backend.arguments.subarray",
    "to_linear": "gossamer_backend.arguments.size_equations",
    "unattached_message": "gossamer_backend.registry.installed_backends",
    "view_of": "gossamer_backend.arguments.view_of",
}

__all__ = [
    "ArgumentValue",
    "ArrayTest",
    "ArrayView",
    "Exported",
    "Extension",
    "FixedArguments",
    "Pass",
    "Plugin",
    "ValidatingBackend",
    "address",
    "compile_tests",
    "export_artifact",
    "extension_versions",
    "fixed_arguments",
    "function_of_integers",
    "new_array",
    "subarray",
    "to_linear",
    "unattached_message",
    "view_of",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
