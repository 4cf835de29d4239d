"""The cost model: the expected time of a product in each format."""
