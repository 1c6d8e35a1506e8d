"""Known truth, data sets, methods to compare with, and the paper's experiments."""
