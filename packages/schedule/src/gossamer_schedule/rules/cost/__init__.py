"""The cost model of a CPU: tiles in registers, gathered and packed rows, the work that pays for a thread."""
