"""Intrinsics for products by matrix instructions: semantics and implementations, as scripts."""
