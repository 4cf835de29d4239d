"""Position stage to loop stage: sparse buffers become ordinary ones."""
