"""The commands, one file each, with their options, checks and messages."""
