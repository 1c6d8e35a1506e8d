"""Tables follow the numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.known_results import crafted, from_counts, make_results, row_of, with_failures
from fairchance.simulate.populations import Lender
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.all_tables import (
    all_tables,
    beside_the_paper,
    overview,
    parity_costs,
)
from fairchance_lab.experiments.certificates import summarise_certificates
from fairchance_lab.experiments.comparison import compared
from fairchance_lab.experiments.results import SHARES
from fairchance_lab.experiments.runner import Run, run_experiment
from fairchance_lab.experiments.spec import Experiment
from fairchance_lab.experiments.verdict import best_variant, find_past
from fairchance_lab.experiments.world_spec import WorldSpec
from fairchance_lab.paper.released import DEVIATIONS, SWITCHES


def test_failures_are_left_out_of_means(rng):
    whole = make_results(rng, ("plain", "fairall-aligned", "ceiling"), size=(8, 5), n=300)
    results = with_failures(whole, "fairall-aligned", (2, 5))
    for metric in ("revenue", "pooled_fdr", "above_alpha", "acceptance_rate"):
        expected = tables.per_repetition(whole, metric)[0, 1][[0, 1, 3, 4, 6, 7]]
        estimate = tables.summary(results, metric).estimate[0, 1]
        assert estimate.mean == pytest.approx(expected.mean())
        assert estimate.standard_error == pytest.approx(expected.std(ddof=1) / np.sqrt(6))
    assert row_of(overview(results, 0), "fairall-aligned")["failed_repetitions"] == 2
    assert row_of(overview(whole, 0), "fairall-aligned")["failed_repetitions"] == 0


def test_a_varied_option_in_tables():
    """A method that the option does not change is shown once."""
    world = WorldSpec("lender", n_batch=80, n_rounds=3, past=({"rule": "policy"},))
    experiment = Experiment(
        "x",
        world,
        ("plain", "mine", "opt-offline"),
        classifier={"paper_text": True, "coverage": "mean-past-score"},
        variants={"mine": {"method": "explore-fair", "weight_cap": 7}},
        vary={"slack": (0.0, 0.001)},
        repetitions=2,
    )
    results = run_experiment(experiment, Lender(), Run(jobs=1))
    assert results.settings == ("slack = 0.0", "slack = 0.001")
    assert (results.main, results.alphas) == (1, (0.15, 0.15))
    assert results.values == (0.0, 0.001)
    for table in all_tables(results):
        assert ("slack = 0.0" in table.setting) or table.name.endswith("-by-slack"), table.name
    made = {table.name: table for table in all_tables(results)}
    named = {name: [row["method"] for row in table.rows] for name, table in made.items()}
    assert named["overview-slack-0.0"] == ["plain", "mine"]
    assert named["overview-slack-0.001"] == list(experiment.methods)
    by_slack = made["revenue-by-slack"]
    assert [column.title for column in by_slack.columns] == ["method", *results.settings]
    assert np.isnan(by_slack.rows[2]["revenue_slack_0.0"])


def test_whether_the_past_policy_kept_alpha_is_judged_over_repetitions(rng):
    """Pooled people of all repetitions would look surer than they are."""
    results = make_results(rng, ("plain",), size=(6, 4), n=300)
    for name, share in {"n_past": 1.0, "n_past_accepted": 0.5, "n_past_accepted_good": 0.4}.items():
        results.count(name)[0, 0, :, 0] = np.round(share * np.array([[100], [110]] * 3))
    past = find_past(results)
    good, accepted = (
        results.count(name)[0, 0, :, 0].sum(-1) for name in ("n_accepted_good", "n_accepted")
    )
    fdr = tables.over_repetitions(1 - good / accepted, axis=0)
    (share, before), (_, first) = past.history, past.first
    assert (past.follower, share) == ("plain", 0.5)
    assert before.mean == pytest.approx(0.2)
    assert (first.mean, first.half_width) == (fdr.mean, fdr.half_width)


def test_best_variant():
    for best in ("exploit-fair", "both-fair"):
        results = crafted({"plain": 50, "exploit-fair": 60, "both-fair": 60} | {best: 90})
        assert best_variant(results, 0) == best
    assert best_variant(crafted({"fair-clf": 50}), 0) is None
    assert find_past(crafted({"fair-clf": 50})) is None


def test_reasons_follow_the_options_of_a_setting():
    results = crafted({"plain": 50}, published="german_gender")
    (row,) = overview(results, 0).rows
    results.about["settings"][0]["options"] = {"weights": "none"}
    (changed,) = overview(results, 0).rows
    assert DEVIATIONS["B7"].ours in row["why_different"]
    assert DEVIATIONS["B7"].ours not in changed["why_different"]
    assert "weights = none" in changed["why_different"]


def test_no_reason_of_a_run_as_released_is_false():
    names = ("plain", "exploit-fair")
    results = crafted(dict.fromkeys(names, 50), published="german_gender", switches=list(SWITCHES))
    for row in overview(results, 0).rows:
        assert not any(DEVIATIONS[name].ours in row["why_different"] for name in SWITCHES)
        assert all(name in row["why_different"] for name in SWITCHES)


def test_costs_of_parity_at_equal_flexibility():
    """A group of which 100 are accepted at an FDR of .1 brings 13 thousand."""
    shared = {"plain": 100, "fair-shared-cut": 60, "fair-fit": 100}
    cuts = {"per-group-cuts": 140, "exploit-fair": 120}
    (table,) = parity_costs(crafted(shared | cuts), 0)
    assert "Algorithm 1" in table.title
    assert [row["comparison"] for row in table.rows] == [
        "one cut: parity at the cut",
        "one cut: parity in the fit",
        "cut per group: parity at the cut",
        "no parity: cut per group",
    ]
    for row, want in zip(table.rows, (-10.4, 0, -5.2, 10.4), strict=True):
        assert row["revenue"] == pytest.approx(want, abs=0.7)
        assert row["revenue_low"] <= row["revenue"] <= row["revenue_high"] < row["revenue_low"] + 2
    assert len(parity_costs(crafted(shared | {"clf-plain": 90, "clf-fair-fit": 80}), 0)) == 2
    assert not parity_costs(crafted({"plain": 100, "exploit-fair": 100}), 0)


def test_the_group_an_experiment_is_about_has_a_column(rng):
    results = make_results(rng, n=300, focus="b")
    row = overview(results, 0).rows[1]
    good, accepted = (
        results.count(name)[0, 1, :, -tables.late_rounds(results) :, 1]
        for name in ("n_good", "n_accepted_good")
    )
    by_hand = np.mean([np.nanmean(a / g) for a, g in zip(accepted, good, strict=True)])
    assert row["focus_tpr"] == pytest.approx(by_hand)
    assert "TPR b" in overview(results, 0).markdown()
    assert "focus_tpr" not in overview(make_results(rng), 0).rows[1]


def test_overview_of_all_methods(rng):
    results = make_results(rng, ("plain", "greedy-aligned"), size=(6, 5), n=300)
    table = overview(results, 0)
    for i, name in enumerate(results.methods):
        row = row_of(table, name)
        cells = table.cells(row)
        for column, (text, _) in zip(table.columns[1:], cells[1:], strict=True):
            estimate = tables.summary(results, column.key).estimate[0, i]
            assert row[column.key] == estimate.mean
            assert row[f"{column.key}_standard_error"] == estimate.standard_error
            assert text.startswith(column.form(estimate.mean))
            assert (" ± " in text) == column.error
    assert "why_different" not in table.rows[0]


def test_rows_of_the_paper_with_reasons(rng):
    names = ("plain", "kilbertus-icml", "kilbertus-aligned", "greedy-aligned")
    results = make_results(rng, names, size=(3, 4), n=300, published="german_gender")
    table = overview(results, 0)
    for name in ("kilbertus-icml", "kilbertus-aligned"):
        row = row_of(table, name)
        assert table.cells(row)[-1] == ("9.7", "")
        assert row["published_fdr"] == 0.24
        assert "a gradient for each weight" in row["why_different"]
        assert any(name in text and row["why_different"] in text for text in table.remarks)
    row = row_of(table, "greedy-aligned")
    assert (table.cells(row)[-1], row["why_different"]) == (("–", ""), "")
    rows = [row["method"] for row in beside_the_paper(results, 0).rows]
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
    row = row_of(overview(results, 0), "plain")
    assert (row["fdr"], row["pooled_fdr"]) == (0.5, 0.1)
    row = row_of(beside_the_paper(results, 0), "plain")
    assert (row["fdr"], row["published_fdr"]) == (0.5, 0.11)


def test_acceptance_is_the_share_of_all_people():
    people = np.array([[100, 300], [50, 50]]).reshape(1, 1, 1, 2, 2)
    accepted = np.array([[50, 50], [0, 100]]).reshape(1, 1, 1, 2, 2)
    counts = {"n_people": people, "n_good": people, "n_accepted": accepted}
    counts["n_accepted_good"] = accepted
    results = from_counts(counts, ("plain",), "ab")
    rates = tables.per_round(results, "acceptance_rate")
    assert rates.ravel().tolist() == [0.25, 1.0]
    assert tables.per_repetition(results, "pooled_acceptance_rate").ravel().tolist() == [0.4]


def test_failed_runs_are_not_counted(rng):
    names = ("certified", "ceiling")
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
    assert summarise_certificates(failed, "certified", 0) == summarise_certificates(
        five, "certified", 0
    )
    assert (
        summarise_certificates(with_failures(whole, "certified", range(6)), "certified", 0).runs
        == 0
    )
