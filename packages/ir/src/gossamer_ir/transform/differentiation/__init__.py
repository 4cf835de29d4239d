"""Reverse-mode differentiation of programs at the coordinate stage.

The method is that of Griewank and Walther, "Evaluating derivatives" (2008): the statements of the adjoint
program run in the reverse order, and each adds to the gradients of what it reads. Values that the derivatives
need are computed again.
"""
