"""Conversions as programs of the language: loops over the elements of a storage, which a backend compiles.

A conversion is planned for the first tensor of a kind, and the plan is replayed for the next ones:

* `plans`: the steps of a conversion, which are recorded while they are executed;
* `programs`: loop nests and statements of the IR, and their compilation as steps;
* `source`: the loops over the elements of the source, and what is known about their order;
* `axes`: the slots of the elements along the axes of the target;
* `results`: the last program, which stores coordinates and values.
"""
