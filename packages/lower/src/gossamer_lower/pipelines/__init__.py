"""Pipelines: which passes run one after the other, and passes that run a whole pipeline."""
