"""What tests ask about charts."""

from __future__ import annotations

# The name of a group or method that would do harm wherever it is not shown as it is.
HOSTILE = '"><script>alert(1)</script>${x} datum.y [a.b]\\'


def rows_of(chart, *names):
    """Return the rows of a chart's data that have all these fields."""
    tables = chart.to_dict()["datasets"].values()
    return [row for table in tables for row in table if set(names) <= set(row)]


def walk(part, path=()):
    """Yield every text of a specification with the keys that lead to it."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(value, dict | list | tuple):
            yield from walk(value, (*path, key))
        elif isinstance(value, str):
            yield value, (*path, key)


def only_values_and_titles(chart):
    """Return whether a hostile name is in a chart, and nowhere but in values and titles."""
    places = [path for text, path in walk(chart.to_dict()) if HOSTILE in text]
    return bool(places) and all(
        "datasets" in path or path[-1] in ("text", "title") or path[-2] in ("domain", "sort")
        for path in places
    )
