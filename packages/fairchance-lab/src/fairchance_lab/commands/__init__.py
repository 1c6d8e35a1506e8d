"""Commands of the lab, which join the command line ``fairchance`` by an entry point."""
