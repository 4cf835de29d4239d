"""The cost model of a CPU: vector width, registers, and the work that pays for a thread."""
