"""Tables in and out of commands, and the rows of them that cannot be used."""
