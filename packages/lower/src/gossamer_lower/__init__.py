"""The passes from the coordinate stage to the flat stage."""
