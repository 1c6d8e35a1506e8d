"""Algorithm 1 of the paper, for any features."""
