"""Conversions by kernels: one is recorded for the first tensor of a kind, and replayed for others.

From the entry to the details, each of which imports only those after it:

* `convert_by_kernels`: replays a recording, or makes one;
* `intermediate_formats`: one conversion, or several by way of formats that sort the elements;
* `build_storage`: one conversion: a loop over the elements, axis after axis, the last kernel;
* `results`: the last kernel, which stores coordinates and values;
* `axes`: the axes of the destination, one file for each kind;
* `coordinates`: the elements' coordinates along these axes;
* `slots`, `fibers`: the slot of an element in its fiber; the lengths, offsets and coordinates of fibers;
* `build_state`: the state after some axes, and what kernels bind for each element;
* `source`: the loops over the elements of the source, and what is known about their order;
* `kernels`: loop nests and statements of the IR, their arguments, and their compilation;
* `recording`: the calls of a conversion, which are recorded while they are executed.
"""

# Other expressions: not optimized.
# Other statements: none is in the nests that this package makes.
