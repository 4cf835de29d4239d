"""The instructions that kernels and C loops execute in an emulated process: for which operators, and how."""
