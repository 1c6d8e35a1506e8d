"""Configurations that a parser should not follow to their end."""

# Values inside each other, more than 20 of them.
NESTED = [
    f"x = {'[' * 1000}{']' * 1000}",
    f"x = {'{a = ' * 1000}1{'}' * 1000}",
    f"x = {'[' * 30}{']' * 30}",
    f"{'a.' * 1000}a = 1",
    f"[{'a.' * 1000}a]",
]
