"""Benchmarks: ratios against named peers, measured in one run and stored as data.

`python -m benchmarks --help` says what can be chosen; `nox -s bench` installs the peers first.
"""
