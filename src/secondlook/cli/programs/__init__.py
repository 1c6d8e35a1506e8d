"""Commands on programs: deciding real batches, on the record."""
