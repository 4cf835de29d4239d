"""The commands of `nox -s fuzz`, which run many random programs in several processes."""
