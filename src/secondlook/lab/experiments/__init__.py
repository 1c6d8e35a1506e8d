"""The paper's experiments and others: specs, runs, tables, figures."""
