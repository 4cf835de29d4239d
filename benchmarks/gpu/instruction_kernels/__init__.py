"""Kernels that execute one instruction on registers of the caller, to check what hardware and interpreter do.

Tests of the plugin run them, too.
"""
