"""The pictures of the gallery: each example leaves its chart in the name ``chart``."""

from pathlib import Path

from sphinx_gallery.scrapers import figure_rst

from fairchance import plot


def scrape(_block, variables, settings):
    """Keep the chart that a block of an example has drawn; return what shows it."""
    chart = variables["example_globals"].pop("chart", None)
    if chart is None:
        return ""
    path = Path(next(variables["image_path_iterator"])).with_suffix(".svg")
    plot.save(chart, path.with_suffix(""))
    path.with_suffix(".png").unlink()
    return figure_rst([str(path)], settings["src_dir"], chart.description)
