"""Random loop nests of the loop stage, which no program of the coordinate stage lowers to."""
