"""The applicants: reading, naming, remembering and explaining them."""
