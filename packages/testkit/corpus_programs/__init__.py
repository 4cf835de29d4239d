"""The programs of the corpus, as they are written; `generate_corpus.py` makes the files."""
