"""A durable record of decisions and outcomes, which proves itself."""
