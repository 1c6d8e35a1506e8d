"""The page that shows a program to people."""
