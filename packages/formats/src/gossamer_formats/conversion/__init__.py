"""Conversions between formats, derived from the two descriptions: by kernels, or by NumPy.

A conversion by kernels is recorded for the first tensor of a kind, and the recording is repeated for others:

* `recording`: the calls of a conversion, which are recorded while they are executed;
* `kernels`: loop nests and statements of the IR, their arguments, and their compilation;
* `source`: the loops over the elements of the source, and what is known about their order;
* `axes`: the slots of the elements along the axes of the target;
* `results`: the last kernel, which stores coordinates and values.

NumPy (`numpy`) converts few elements, for which compiling does not pay, and what kernels leave to it.
"""
