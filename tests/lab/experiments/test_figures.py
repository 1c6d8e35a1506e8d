"""Figures name every method, cut nothing off, and are reproducible."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

from lab.experiments.test_tables import make_results
from secondlook.errors import InputError
from secondlook.lab.experiments import figures

METHODS = (
    "plain",
    "exploit-fair",
    "explore-fair",
    "both-fair",
    "no-exploration",
    "alpha-at-once",
    "fair-clf",
    "fair-clf-schedule",
    "opt-offline",
    "ceiling",
)


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    return make_results(rng, (*METHODS, "own:first", "own:second"), size=(4, 9), n=200)


@pytest.fixture(scope="module")
def drawn(results):
    return figures.draw_all(results)


def text_of(figure):
    return " ".join(
        text.get_text() for text in figure.findobj(match=lambda a: hasattr(a, "get_text"))
    )


def names_all(figure):
    text = text_of(figure).replace("\n", " ").lower()
    return all(method in text for method in METHODS)


def test_every_method_is_named_in_every_figure(rng):
    results = make_results(rng, METHODS, "ab", (0.1, 0.15), size=(3, 6), n=100)
    drawn = figures.draw_all(results)
    assert "settings" in drawn
    assert [name for name, figure in drawn.items() if not names_all(figure)] == []


@pytest.mark.parametrize("groups", ["abcd", "abcdefg"])
def test_every_group_has_a_panel_and_every_method_is_named(rng, groups):
    """Only this figure depends on the number of groups."""
    results = make_results(rng, METHODS, groups, size=(3, 6), n=100)
    figure = figures.true_positive_rates(results)
    assert names_all(figure)
    assert all(f"Group {group}" in text_of(figure) for group in groups)


def test_no_text_is_outside_its_figure(drawn):
    for name, figure in drawn.items():
        figure.canvas.draw()
        width, height = figure.canvas.get_width_height()
        for text in figure.findobj(match=lambda a: hasattr(a, "get_text")):
            if not any(letter.isalpha() for letter in text.get_text()):
                continue  # tick labels that are not drawn
            box = text.get_window_extent()
            inside = box.x0 > -2 and box.y0 > -2 and box.x1 < width + 2 and box.y1 < height + 2
            assert inside, (name, text.get_text())


def test_labels_beside_a_figure_do_not_overlap(results):
    figure = figures.revenue(results)
    figure.canvas.draw()
    texts = [text for text in figure.axes[0].texts if text.get_text()]
    assert len(texts) == len(results.methods)
    boxes = sorted((text.get_window_extent() for text in texts), key=lambda box: box.y0)
    assert all(above.y0 >= below.y1 - 1 for below, above in pairwise(boxes))


@pytest.mark.parametrize("wanted", [[0.0] * 5, [1.0] * 5, [0.0, 0.0, 0.2, 0.9, 1.0], [0.5] * 5])
def test_labels_are_spread_inside_the_axes(wanted):
    positions = figures.spread(wanted, [0.15] * 5)
    assert min(positions) >= 0.075 - 1e-9
    assert max(positions) <= 0.925 + 1e-9
    assert all(b - a >= 0.15 - 1e-9 for a, b in pairwise(positions))


def test_every_method_has_its_own_style(results):
    styles = [figures.style(results, name) for name in results.methods]
    assert len(set(styles)) == len(styles)
    assert len({style.marker for style in styles}) == len(styles)
    lines = figures.revenue(results).axes[0].lines
    shares = figures.exploit_region(results).axes[0].lines
    for i, style in enumerate(styles):
        assert lines[i].get_color() == shares[i].get_color() == style.colour


def test_the_figure_of_settings_needs_several(drawn):
    assert "settings" not in drawn
    assert "fdr" in drawn


def test_lines_show_the_means(results):
    line = figures.revenue(results).axes[0].lines[2]
    means = figures.tables.series(results, "revenue").mean[0, 2]
    assert np.asarray(line.get_ydata()) == pytest.approx(means)


def test_the_fdr_figure_has_a_line_at_alpha(results):
    left = figures.fdr(results).axes[0]
    assert any(np.allclose(line.get_ydata(), 0.15) for line in left.lines)
    assert "α = 0.15" in left.get_title(loc="left")


def test_frontier_of_a_group(results):
    assert figures.frontier(results, "b").axes[0].get_ylabel() == "TPR of group b"
    with pytest.raises(InputError, match="one of a, b, got 'z'"):
        figures.frontier(results, "z")


def test_one_repetition_and_one_round_can_be_drawn(rng):
    drawn = figures.draw_all(make_results(rng, ("plain",), "a", size=(1, 1)))
    assert {"revenue", "fdr", "true-positive-rates"} <= set(drawn)
    for name, figure in drawn.items():
        figure.canvas.draw()
        assert any(axes.has_data() for axes in figure.axes), name


def test_files_are_reproducible(rng, tmp_path):
    results = make_results(rng, METHODS[:3], size=(2, 4), n=50)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        written = figures.save(figures.fdr(results), folder / "fdr")
        assert written == [folder / "fdr.svg", folder / "fdr.png"]
    for name in ("fdr.svg", "fdr.png"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    ET.fromstring((first / "fdr.svg").read_text())
