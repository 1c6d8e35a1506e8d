"""Configurations that a parser should not follow to their end."""

# Keys of so many parts that the parser would need gigabytes.
DOTTED = [
    f"{'a.' * 20_000}a = 1",
    f"{'a . ' * 10_000}a = 1",
    f"[{'a.' * 20_000}a]",
    f"[[{'a.' * 20_000}a]]",
    f"""{'"=".' * 20_000}a = 1""",
    f"""{"'#'." * 20_000}a = 1""",
    f"x = {{ {'a.' * 20_000}a = 1 }}",
    f"x = 'a' # '\n{'a.' * 20_000}a = 1",
    f"""x = {{ y = \"\"\"a\"\"\"\", {"a." * 20_000}a = 1 }}""",
]
# Values inside each other, more than 20 of them.
NESTED = [
    f"x = {'[' * 1000}{']' * 1000}",
    f"x = {'{a = ' * 1000}1{'}' * 1000}",
    f"x = {'[' * 30}{']' * 30}",
    f"{'a.' * 1000}a = 1",
    *DOTTED,
]
# Dots that are no parts of a key.
MANY_DOTS = f"""
x = "{"a." * 1000}" # {"a." * 1000}
y = [{"0.5, " * 1000}]
z = '''
{"a." * 1000}'''
"""
