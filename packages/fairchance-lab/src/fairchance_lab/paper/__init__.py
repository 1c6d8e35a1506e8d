"""The paper: its published numbers, its claims, its theorems and its released code."""
