"""Reports on many methods: the table of all, failures, assumptions, figures by family."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lab.experiments.test_tables import from_counts, make_results
from secondlook.lab.experiments import figures, findings, tables
from secondlook.lab.experiments.certificates import summarised
from secondlook.lab.experiments.comparison import compared
from secondlook.lab.experiments.figures import MANY, families
from secondlook.lab.experiments.methods import METHODS, REFERENCES
from secondlook.lab.experiments.report import (
    OVERVIEW,
    Cell,
    compare_with_paper,
    overview,
    write_report,
)
from secondlook.lab.experiments.results import SHARES, Failure

NAMES = tuple(name for name in (*METHODS, *REFERENCES) if "quick" not in name)
CROWD = tuple(
    name for name in NAMES if name.startswith(("plain", "certified", "greedy", "random", "kilbert"))
)


def with_failures(results, method, repetitions):
    """Return results in which a method failed in some repetitions."""
    lost = (results.columns["method"] == method) & np.isin(
        results.columns["repetition"], list(repetitions)
    )
    columns = {
        name: np.where(lost, 0, values) if name.startswith("n_") else values
        for name, values in results.columns.items()
    }
    failures = tuple(
        Failure(0.15, method, k, 1000 + k, f"FloatingPointError: seed {1000 + k} diverged.")
        for k in repetitions
    )
    return replace(results, columns=columns, failures=failures)


def cells_of(table, name):
    """Return the cells of a method's row."""
    return next(cells for row, cells in table.rows if row.startswith(name))


def test_overview_of_all_methods(rng):
    results = make_results(rng, ("plain", "greedy-aligned"), size=(6, 5), n=300)
    table = overview(results, 0)
    for i, name in enumerate(("Plain", "Greedy-aligned")):
        cells = cells_of(table, name)
        assert len(cells) == len(OVERVIEW) == len(table.titles)
        for cell, metric in zip(cells, OVERVIEW, strict=True):
            estimate = tables.summary(results, metric).estimate[0, i]
            form = findings.thousands if metric == "revenue" else findings.rate
            assert cell == Cell(form(estimate.mean), f"± {form(estimate.standard_error)}")
    assert "Why they differ" not in table.titles


def test_rows_of_the_paper_with_reasons(rng):
    names = ("plain", "kilbertus-icml", "kilbertus-aligned", "greedy-aligned")
    results = make_results(rng, names, size=(3, 4), n=300, published="german_gender")
    table = overview(results, 0)
    assert "Why they differ" in table.titles
    for name in ("Kilbertus-icml", "Kilbertus-aligned"):
        paper, reason = cells_of(table, name)[-2:]
        assert paper.text == "9.7"
        assert "0.24, 0.11" in paper.more
        assert "adds one number" in reason.text
    assert [cell.text for cell in cells_of(table, "Greedy-aligned")[-2:]] == ["–", ""]
    rows = [name for name, _ in compare_with_paper(results, 0).rows]
    assert "kilbertus (not run)" not in rows
    assert "yang (not run)" in rows


def test_fdr_of_the_paper_is_compared_with_the_mean_of_rounds():
    """10 of 10 accepted are bad in one round, 0 of 90 in the other: 0.5 per round, 0.1 pooled."""
    accepted = np.array([10, 90]).reshape(1, 1, 1, 2, 1) * np.ones((1, 1, 2, 1, 1), int)
    counts = {
        "n_people": np.full(accepted.shape, 100),
        "n_good": np.full(accepted.shape, 90),
        "n_accepted": accepted,
        "n_accepted_good": np.where(accepted == 90, 90, 0),
    }
    results = from_counts(counts, ("plain",), "a", published="german_gender")
    table = overview(results, 0)
    assert "mean of rounds, so compare them with ours per round" in table.note
    assert table.titles[1:3] == ["FDR, per round", "Pooled over rounds"]
    assert [cell.text for cell in cells_of(table, "Plain")[1:3]] == ["0.500", "0.100"]
    ours, paper = cells_of(compare_with_paper(results, 0), "Plain")[2:4]
    assert ours.text.startswith("0.500")
    assert paper.text == "0.11"


def test_acceptance_is_the_share_of_all_people():
    people = np.array([[100, 300], [50, 50]]).reshape(1, 1, 1, 2, 2)
    accepted = np.array([[50, 50], [0, 100]]).reshape(1, 1, 1, 2, 2)
    counts = {"n_people": people, "n_good": people, "n_accepted": accepted}
    counts["n_accepted_good"] = accepted
    results = from_counts(counts, ("plain",), "ab")
    rates = tables.per_round(results, "acceptance_rate")
    assert rates.ravel().tolist() == [0.25, 1.0]
    assert tables.per_repetition(results, "pooled_acceptance_rate").ravel().tolist() == [0.4]


def test_failures_have_seeds_and_are_left_out_of_means(rng, tmp_path, without_figures):
    names = ("plain", "fairall-aligned", "no-exploration", "opt-hindsight")
    whole = make_results(rng, names, size=(8, 5), n=300)
    results = with_failures(whole, "fairall-aligned", (2, 5))
    assert (
        findings.failed_in(results, "fairall-aligned", 0) == "failed in 2 of 8 (seeds 1002, 1005)"
    )
    assert findings.failed_in(results, "plain", 0) == ""
    (sentence,) = findings.failures(results)
    assert "failed in 2 of 8 (seeds 1002, 1005); its numbers are from the other" in sentence
    assert "FloatingPointError: seed 1002 diverged. (1 more reasons)" in sentence
    kept = [0, 1, 3, 4, 6, 7]
    for metric in ("revenue", "pooled_fdr", "above_alpha", "acceptance_rate"):
        all_eight = tables.per_repetition(whole, metric)[0, 1]
        estimate = tables.summary(results, metric).estimate[0, 1]
        expected = all_eight[kept]
        assert estimate.mean == pytest.approx(expected.mean())
        assert estimate.standard_error == pytest.approx(expected.std(ddof=1) / np.sqrt(6))
    page = write_report([results], tmp_path / "report.html")[0].read_text(encoding="utf-8")
    assert "Methods that failed" in page
    assert "Fairall-aligned: failed in 2 of 8 (seeds 1002, 1005)" in page
    assert findings.failures(whole) == []
    assert not any("failed" in name for name, _ in overview(whole, 0).rows)


def test_report_on_a_method_that_always_failed(rng, tmp_path):
    results = make_results(rng, ("plain", "fairall-aligned"), size=(3, 4), n=300)
    results = with_failures(results, "fairall-aligned", range(3))
    page = write_report([results], tmp_path / "report.html")[0].read_text(encoding="utf-8")
    assert "failed in 3 of 3 (seeds 1000, 1001, 1002); it has no numbers." in page
    assert "other repetitions" not in page
    assert "nan" not in page.lower().replace("finan", "")
    assert findings.best_variant(with_failures(results, "plain", range(3)), 0) is None


def test_message_if_all_but_references_failed(rng):
    names = ("plain", "fairall-aligned", "opt-hindsight")
    results = with_failures(make_results(rng, names, size=(3, 4), n=50), "plain", range(3))
    assert findings.nothing_found(results) == ""
    assert "each failed" in findings.nothing_found(with_failures(results, names[1], range(3)))
    assert findings.nothing_found(with_failures(results, names[1], range(2))) == ""
    references = make_results(rng, names[2:], size=(3, 4), n=50)
    assert findings.nothing_found(references) == ""


def test_long_lists_of_seeds_are_shortened(rng):
    results = make_results(rng, ("plain",), size=(9, 2), n=50)
    results = with_failures(results, "plain", range(7))
    assert findings.failed_in(results, "plain", 0).endswith(
        "(seeds 1000, 1001, 1002, 1003, 1004, …)"
    )


def test_assumptions_are_grouped(rng):
    names = ("plain", "extrapolation-published", "extrapolation-aligned", "wei-finite-aligned")
    sentences = findings.assumptions(make_results(rng, names, size=(1, 2)))
    assert len(sentences) == 2
    assert sentences[0].startswith(
        "“Extrapolation-published” and “Extrapolation-aligned” assume: At"
    )
    assert sentences[1].startswith("“Wei-finite-aligned” assumes: ")


def test_every_method_has_a_family_of_at_most_eight():
    members = families(NAMES)
    assert sorted(i for places in members.values() for i in places) == list(range(len(NAMES)))
    assert max(map(len, members.values())) <= 8
    assert "Others" not in members
    assert list(families(["own:make"] * 9)) == ["Others (1)", "Others (2)"]


@pytest.fixture(scope="module")
def crowd():
    results = make_results(np.random.default_rng(2), CROWD, size=(3, 5), n=200)
    assert len(CROWD) > MANY
    return results, figures.draw_all(results)


def texts_of(figure):
    return [t for t in figure.findobj(match=lambda a: hasattr(a, "get_text")) if t.get_text()]


def test_many_methods_are_all_named_and_no_text_is_cut_off(crowd):
    _, drawn = crowd
    for name, figure in drawn.items():
        figure.canvas.draw()
        width, height = figure.canvas.get_width_height()
        shown = " ".join(text.get_text() for text in texts_of(figure)).lower()
        assert all(method in shown for method in CROWD), name
        for text in texts_of(figure):
            if any(letter.isalpha() for letter in text.get_text()):
                box = text.get_window_extent()
                inside = box.x0 > -2 and box.y0 > -2 and box.x1 < width + 2 and box.y1 < height + 2
                assert inside, (name, text.get_text())


def test_panels_have_at_most_eight_different_lines(crowd):
    results, drawn = crowd
    for name in ("revenue", "fdr", "differences", "exploration"):
        for axes in drawn[name].axes:
            lines = [line for line in axes.lines if not line.get_label().startswith("_")]
            assert 0 < len(lines) <= 8
            looks = {(n.get_color(), str(n.get_linestyle()), n.get_marker()) for n in lines}
            assert len(looks) == len(lines), axes.get_title("left")
    line = drawn["revenue"].axes[0].lines[0]
    i = [name.capitalize() for name in CROWD].index(line.get_label())
    means = tables.series(results, "revenue").mean[0, i]
    assert np.asarray(line.get_ydata()) == pytest.approx(means)


def test_settings_of_a_method_share_a_colour(crowd):
    results, _ = crowd
    published, aligned, icml = (
        figures.style(results, f"kilbertus-{setting}")
        for setting in ("published", "aligned", "icml")
    )
    assert published.colour == aligned.colour == icml.colour
    assert len({published.line, aligned.line, icml.line}) == 3
    assert figures.style(results, "kilbertus-semi-aligned").colour != aligned.colour


def test_sweep_with_many_methods(rng):
    results = make_results(rng, NAMES[: MANY + 1], "abcd", (0.1, 0.15), size=(2, 3), n=80)
    drawn = figures.draw_all(results)
    for name in ("alpha-sweep", "true-positive-rates"):
        drawn[name].canvas.draw()
    assert len(drawn["alpha-sweep"].axes) == 2 * len(families(results.methods))


def test_failed_runs_are_not_counted(rng):
    names = ("certified", "opt-hindsight")
    results = make_results(rng, names, size=(6, 5), n=300)
    shares = {name: rng.random(len(results)) for name in SHARES}
    certified = results.columns["n_people"] * (results.columns["round"] > 2)
    columns = results.columns | shares | {"n_certified": certified}
    whole = replace(results, columns=columns)
    lost = (columns["method"] == "certified") & (columns["repetition"] == 4)
    failed = with_failures(whole, "certified", (4,))
    unknown = {name: np.where(lost, np.nan, failed.columns[name]) for name in SHARES}
    failed = replace(failed, columns=failed.columns | unknown)
    before, after = compared(whole)[0], compared(failed)[0]
    assert (before.certified.runs, after.certified.runs) == (6, 5)
    assert (before.uncertified.rounds, after.uncertified.rounds) == (12, 10)
    kept = whole.columns["repetition"] != 4
    five = replace(whole, columns={name: values[kept] for name, values in whole.columns.items()})
    assert after.earned["whole"].share == pytest.approx(compared(five)[0].earned["whole"].share)
    assert summarised(failed, "certified", 0) == summarised(five, "certified", 0)
    assert summarised(with_failures(whole, "certified", range(6)), "certified", 0).runs == 0
