"""The command line: ``fairchance``."""
