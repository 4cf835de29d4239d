"""Kinds of statements: reductions, atomic accumulation, conditional bodies, pipelined loops."""
