"""The sources of the programs of the corpus, from which `tools/generators/corpus.py` makes the file."""
