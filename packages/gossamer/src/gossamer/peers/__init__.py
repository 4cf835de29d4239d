"""Other libraries to be measured against; none of them is needed."""
