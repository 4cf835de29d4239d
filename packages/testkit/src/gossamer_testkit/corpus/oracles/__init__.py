"""The oracles for programs of the corpus. They use only NumPy."""

from gossamer_testkit.corpus.oracles.by_name import ORACLES, Oracle

__all__ = ["ORACLES", "Oracle"]
