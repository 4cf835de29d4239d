"""Runs kernels in an emulated process of AArch64."""
