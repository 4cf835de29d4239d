"""Reports of a run: goals, tables, the picture of the roofline, and the page of the stored runs."""
