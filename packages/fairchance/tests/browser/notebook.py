"""A page like a notebook, on which objects are shown."""

from __future__ import annotations

_PAGE = """<!doctype html><html lang="en" data-ready="yes"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Objects</title>
<style>@media (prefers-color-scheme: dark) {{ body {{ background: #111; color: #eee }} }}</style>
</head><body><main><h1>Objects</h1>{}</main></body></html>"""


def write_notebook(objects, folder):
    """Write a page with what a notebook shows of some objects; return its path."""
    html = _PAGE.format("".join(one._repr_html_() for one in objects))
    path = folder / "objects.html"
    path.write_text(html, encoding="utf-8")
    return path
