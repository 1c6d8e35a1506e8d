"""The command line: ``secondlook``."""
