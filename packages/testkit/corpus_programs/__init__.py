"""The sources of the programs of the corpus, from which `generate_corpus.py` makes the files."""
