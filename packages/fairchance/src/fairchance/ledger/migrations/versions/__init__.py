"""One file per change of the tables; a file that was released never changes."""
