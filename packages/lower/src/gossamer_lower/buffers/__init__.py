"""Position stage to loop stage: sparse buffers become ordinary ones."""

# Other expressions: nothing is concluded from them.
