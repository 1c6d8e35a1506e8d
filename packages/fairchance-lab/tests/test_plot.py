"""Charts of results: specifications are valid, and their data equal counts made another way."""

from __future__ import annotations

import json

import numpy as np
import pytest

from charts import HOSTILE, only_values_and_titles, rows_of
from experiments.known_results import exact, make_results
from fairchance.errors import InputError
from fairchance.plot.marks import is_grey
from fairchance_lab import plot

METHODS = ("plain", "no-exploration", "certified", "fair-clf", "own:first", "ceiling")


def test_only_public_names_are_listed():
    assert [name for name in dir(plot) if not name.startswith("__")] == plot.__all__
    assert all(getattr(plot, name).__doc__ for name in plot.__all__)


@pytest.fixture(scope="module")
def results():
    """Return results with hostile names of methods and of a group."""
    results = make_results(np.random.default_rng(0), METHODS, (HOSTILE, "b"), size=(4, 9), n=200)
    results.about["labels"] = {name: f"{HOSTILE}, {name}" for name in METHODS}
    return results


@pytest.fixture(scope="module")
def drawn(results):
    """Return charts that several tests look at."""
    return {
        "fdr": plot.metric(results, "fdr"),
        "trade-off": plot.trade_off(results),
        "compare": plot.compare(results),
        "groups": plot.groups(results),
        "one group": plot.metric(results, "true_positive_rate", group=HOSTILE),
    }


def counts_of(results, method, **where):
    """Return the accepted and the good among them, added up row by row."""
    columns = results.columns
    here = columns["method"] == method
    for name, value in where.items():
        here = here & (columns[name] == value)
    return [int(columns[f"n_accepted{end}"][here].sum()) for end in ("", "_good")]


def fdr_of(results, method, **where):
    accepted, good = counts_of(results, method, **where)
    return (accepted - good) / accepted if accepted else np.nan


def test_lines_are_means_over_repetitions(results, drawn):
    rows = {row["name"].split(", ")[-1]: row for row in rows_of(drawn["fdr"], "low")}
    assert set(rows) == set(METHODS)
    for method in METHODS:
        for t in range(1, 10):
            each = [fdr_of(results, method, round=t, repetition=r) for r in range(4)]
            known = [value for value in each if np.isfinite(value)]
            shown = rows[method]["value"][t - 1]
            assert shown == pytest.approx(np.mean(known), rel=1e-4)


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("revenue", None),
        ("fdr", None),
        ("selection_rate_difference", None),
        ("true_positive_rate_difference", None),
        ("true_positive_rate", "b"),
    ],
)
def test_the_papers_figures_have_a_line_for_each_method(results, name, group):
    lines = rows_of(plot.metric(results, name, group=group), "low")
    assert {line["name"].split(", ")[-1] for line in lines} == set(METHODS)
    assert {len(line["value"]) for line in lines} == {9}


def test_points_are_mistakes_and_late_revenue(results, drawn):
    rows = {row["method"]: row for row in rows_of(drawn["trade-off"], "method", "y_low")}
    late = range(7, 10)  # the last quarter of 9 rounds, rounded up

    def revenue(method, repetition):
        counts = [counts_of(results, method, repetition=repetition, round=t) for t in late]
        return sum(200 * good - 500 * (accepted - good) for accepted, good in counts)

    for method in METHODS:
        pooled = np.mean([fdr_of(results, method, repetition=r) for r in range(4)])
        assert rows[method]["x"] == pytest.approx(pooled, rel=1e-4)
        earned, best = (np.mean([revenue(m, r) for r in range(4)]) for m in (method, "ceiling"))
        beaten = max(np.mean([revenue(m, r) for r in range(4)]) for m in METHODS) > best
        wanted = earned / len(late) if beaten or best <= 0 else earned / best
        assert rows[method]["y"] == pytest.approx(wanted, rel=1e-3)
    shown = [row["value"] for row in rows_of(drawn["compare"], "row")][: len(METHODS)]
    assert shown == sorted(shown, reverse=True)


def test_alpha_is_drawn_wherever_it_matters(drawn):
    for name, chart in drawn.items():
        named = any("α = 15 %" in row["text"] for row in rows_of(chart, "text"))
        ruled = any(0.15 in (row.get("at"), row.get("y")) for row in rows_of(chart))
        assert named == ruled == (name != "one group"), name


def colours_of(chart):
    scale = chart.to_dict()["layer"][1]["encoding"]["color"]["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def test_four_methods_have_colours_of_their_own_and_can_be_chosen(results, drawn):
    found = colours_of(drawn["fdr"])
    assert len(found) == len(set(found.values()))
    named = {name: c for name, c in found.items() if not is_grey(c)}
    assert len(named) == len(set(named.values())) == 4
    assert f"{HOSTILE}, ceiling" in named
    mine = colours_of(plot.metric(results, "revenue", highlight=["own:first"]))
    assert [c for c in mine.values() if not is_grey(c)] == [mine[f"{HOSTILE}, own:first"]]
    for wrong in (["nobody"], METHODS[:5]):
        with pytest.raises(InputError, match=wrong[0]):
            plot.metric(results, "revenue", highlight=wrong)


def test_54_methods_stay_legible_and_small():
    names = [f"method-{i}" for i in range(54)]
    crowd = make_results(np.random.default_rng(1), names, size=(3, 40), n=60)
    for chart in (plot.trade_off(crowd), plot.metric(crowd, "fdr")):
        spec = chart.to_dict()
        assert len(json.dumps(spec)) < 90_000
        labels = {row.get("label") for row in rows_of(chart)} - {None}
        labels |= {row["text"] for row in rows_of(chart, "text")}
        assert len(labels) <= 6
    tooltips = [layer["encoding"].get("tooltip", []) for layer in spec["layer"]]
    assert max(map(len, tooltips)) <= 5
    assert spec["layer"][1]["encoding"]["color"]["legend"]["symbolLimit"] >= 54


def test_groups_are_pooled_over_rounds(results, drawn):
    rows = rows_of(drawn["groups"], "row")
    for group in (HOSTILE, "b"):
        each = [fdr_of(results, "ceiling", group=group, repetition=r) for r in range(4)]
        mine = [row for row in rows if row["row"] == group and row["name"].endswith("ceiling")]
        assert mine[1]["value"] == pytest.approx(np.mean(each), rel=1e-4)
    with pytest.raises(InputError, match="'nobody'"):
        plot.metric(results, "true_positive_rate", group="nobody")


def test_good_applicants_of_a_group_over_the_rounds(results, drawn):
    columns = results.columns
    rows = {row["name"].split(", ")[-1]: row for row in rows_of(drawn["one group"], "low")}
    here = (columns["method"] == "ceiling") & (columns["group"] == HOSTILE)
    for t in range(1, 10):
        each = []
        for repetition in range(4):
            mine = here & (columns["round"] == t) & (columns["repetition"] == repetition)
            each.append(columns["n_accepted_good"][mine].sum() / columns["n_good"][mine].sum())
        assert rows["ceiling"]["value"][t - 1] == pytest.approx(np.mean(each), rel=1e-4)


def test_few_points_are_all_named():
    labels = []
    for n in (6, 12):
        results = make_results(np.random.default_rng(2), [f"method-{i}" for i in range(n)])
        rows = rows_of(plot.trade_off(results), "method", "tip")
        labels.append({row["label"] for row in rows} - {None})
    few, many = labels
    assert len(few) == 6
    assert 4 <= len(many) <= 5


def test_a_dot_at_zero_is_beside_the_name_of_its_row():
    chart = plot.groups(exact({"plain": ((100, 100), (1, 10))}, groups="ab")).to_dict()
    for panel in chart["vconcat"]:
        low, high = panel["layer"][1]["encoding"]["x"]["scale"]["domain"]
        assert -0.05 * high < low < 0


def test_settings_have_their_own_alpha(rng):
    results = make_results(rng, METHODS[:2], "ab", (0.1, 0.15, 0.2), size=(3, 4), n=200)
    results.about["once"] = ["no-exploration"]
    chart = plot.by_setting(results)
    assert [row["y"] for row in rows_of(chart, "x2")] == [0.1, 0.15]
    rows = [row for row in rows_of(chart, "low") if row["name"] == "No-exploration"]
    assert all(len(set(row["value"])) == 1 for row in rows)
    with pytest.raises(InputError):
        plot.by_setting(make_results(rng, size=(2, 2)))


def test_names_of_users_are_values_or_titles_only(drawn):
    for chart in drawn.values():
        assert only_values_and_titles(chart)
