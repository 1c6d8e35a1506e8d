"""Small, pure parts of a decision: utility, budget, coverage, strategies, fairness, draws."""
