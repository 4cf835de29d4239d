"""Inspector and executor: searches that depend on index arrays only run once, in a kernel of their own."""
