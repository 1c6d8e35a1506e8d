"""Step 1 of Algorithm 1: likelihood models and exact operating points."""
