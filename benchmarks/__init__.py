"""Speed as ratios: everything in one process, interleaved with its reference."""
