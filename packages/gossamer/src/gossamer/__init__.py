"""A compiler for sparse tensor programs: operators, build pipeline and command line."""
