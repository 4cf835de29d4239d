"""What rules know of a machine: the width of vectors, registers, when threads pay."""
