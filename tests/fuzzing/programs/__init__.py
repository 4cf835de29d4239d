"""Random programs of the coordinate stage, with their arguments."""
