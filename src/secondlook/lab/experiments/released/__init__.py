"""What the paper's released code does differently, each deviation a switch of its own."""
