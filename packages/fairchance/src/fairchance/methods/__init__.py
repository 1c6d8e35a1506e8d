"""Methods: anything that can decide on a batch and observe outcomes."""
