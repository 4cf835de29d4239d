"""Operands in any form, checked and converted for kernels; errors of wrong ones."""
