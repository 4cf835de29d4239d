"""Benchmarks: ratios to named contenders, measured in one run and stored as data.

`python -m benchmarks --help` lists the options; `nox -s bench` installs the contenders first.
"""
