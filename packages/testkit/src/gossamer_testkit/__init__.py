"""What a backend author runs: corpus, data strategies, oracles."""
