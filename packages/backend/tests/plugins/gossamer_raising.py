"""A plugin that cannot be imported."""

raise OSError("libmissing.so: cannot open shared object file")
