"""The input generators for programs of the corpus."""

from gossamer_testkit.corpus.inputs.by_name import INPUT_GENERATORS, InputGenerator

__all__ = ["INPUT_GENERATORS", "InputGenerator"]
