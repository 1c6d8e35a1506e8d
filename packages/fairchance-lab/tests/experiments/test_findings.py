"""Sentences and tables follow the numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.known_results import crafted, from_counts, make_results, row_of, with_failures
from fairchance.methods.options import CLASSIFIERS, PARTIAL, RESEARCH
from fairchance.simulate.populations import Lender
from fairchance_lab.experiments import findings, tables
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
from fairchance_lab.experiments.verdict import with_interval
from fairchance_lab.experiments.world_spec import WorldSpec
from fairchance_lab.paper.released import DEVIATIONS, SWITCHES

OUTCOME = [{"rule": "outcome", "good": 0.9, "bad": 0.1}]


def said(sentences):
    return " ".join(sentences)


def test_description_of_the_run():
    text = findings.what_was_run(crafted({"plain": 50, "fair-clf": 40}))
    assert text.startswith("2 methods decided 8 rounds of 2,000 applicants each, in 12 repetitions")
    assert "α = 10 % and 20 %" in findings.what_was_run(crafted({"plain": 50}, alphas=(0.1, 0.2)))


def test_best_variant():
    for best in ("exploit-fair", "both-fair"):
        results = crafted({"plain": 50, "exploit-fair": 60, "both-fair": 60} | {best: 90})
        assert findings.best_variant(results, 0) == best
    assert findings.best_variant(crafted({"fair-clf": 50}), 0) is None


@pytest.mark.parametrize(
    ("published", "data", "other"),
    [
        ("german_gender", "german", False),
        ("german_gender", "lender", True),
        ("adult_race", "adult-ca-2019", False),
        ("adult_race", "german", True),
        (None, "lender", False),
    ],
)
def test_remark_on_other_data_than_the_papers(published, data, other):
    results = crafted({"plain": 50}, published=published)
    results.about["data"]["name"] = data
    assert ("The paper used other data" in said(findings.paper_findings(results))) == other


def test_switches_are_described():
    text = said(findings.paper_findings(crafted({"plain": 50}, switches=["C1", "A9"])))
    assert "C1 (the four variants" in text
    assert "claims are not examined" in text
    beside = crafted({"plain": 50}, published="german_gender")
    assert "No deviation" in said(findings.paper_findings(beside))
    assert findings.paper_findings(crafted({"plain": 50})) == []


@pytest.mark.parametrize(
    ("accepted", "verdict"), [(20, "not measurably different"), (60, "not reproduced for “Plain”")]
)
def test_levels_are_compared_with_the_papers(accepted, verdict):
    """Accepting 2 · 20 people with 4 bad earns 5.2 thousand and prints 6.4; 2 · 60 earn 15.6."""
    results = crafted({"plain": accepted, "fair-clf": 5}, published="german_gender")
    assert verdict in said(findings.paper_findings(results))
    results.about["data"]["name"] = "lender"
    assert verdict not in said(findings.paper_findings(results))


def test_settings_are_in_words():
    world = {
        "past": [{"rule": "policy"}, {"rule": "cutoff", "feature": "{years}", "share": 0.25}],
        "feedback": {"delay": {"kind": "between", "least": 1, "most": 3}, "missing": 0.05},
        "drift": {"feature": "age", "spoil": 0.01},
    }
    results = crafted({"plain": 50}, world=world, classifier={"weight_cap": 3.0})
    text = said(findings.settings(results))
    for words in (
        "the policy of the synthetic lender; of these, it accepted only the 25 % with the highest "
        "{years}.",
        "Outcomes arrive after 1 to 3 rounds; they never arrive for 5 % of the accepted.",
        "gains 200",
        "weight_cap = 3.0 (the largest weight of an outcome)",
        "feature age and spoil 0.01",
        "from 1,000 rows",
    ):
        assert words in text
    assert "known all the same" not in text
    assert "known all the same" in said(findings.settings(crafted({"plain": 5}, switches=["A1"])))


def test_a_past_that_chose_by_the_outcome_leaves_little_to_explore():
    for past, little in ((OUTCOME, True), ([*OUTCOME, {"rule": "group", "group": "a"}], False)):
        text = said(findings.exploration_findings(crafted({"plain": 50}, world={"past": past})))
        assert ("hardly help" in text) == little


def test_failures_have_seeds_and_are_left_out_of_means(rng):
    whole = make_results(rng, ("plain", "fairall-aligned", "ceiling"), size=(8, 5), n=300)
    results = with_failures(whole, "fairall-aligned", (2, 5))
    (sentence,) = findings.failures(results)
    assert "failed in 2 of 8 repetitions (seeds 1002, 1005); its numbers are from the" in sentence
    assert "FloatingPointError: seed 1002 diverged. (1 other reason)" in sentence
    for metric in ("revenue", "pooled_fdr", "above_alpha", "acceptance_rate"):
        expected = tables.per_repetition(whole, metric)[0, 1][[0, 1, 3, 4, 6, 7]]
        estimate = tables.summary(results, metric).estimate[0, 1]
        assert estimate.mean == pytest.approx(expected.mean())
        assert estimate.standard_error == pytest.approx(expected.std(ddof=1) / np.sqrt(6))
    assert findings.failures(whole) == []
    assert not any("failed" in name for name, *_ in overview(whole, 0).texts())
    (sentence,) = findings.failures(with_failures(whole, "plain", range(8)))
    assert "1004, …); it has no numbers" in sentence


def test_every_option_has_a_meaning():
    known = {*CLASSIFIERS[PARTIAL], *RESEARCH}
    assert {*findings.MEANINGS} == known - {"kind", "alpha", "seed"}


def test_a_varied_option_in_sentences_and_tables():
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
    assert "α = 15 % and slack = 0.0 and 0.001" in findings.what_was_run(results)
    text = said(findings.settings(results))
    for words in (
        "coverage = mean-past-score (how the exploit region is found), for plain and mine.",
        "strategy_reading = product (",
        "), for mine.",
        "“mine” is explore-fair with weight_cap = 7 (the largest weight of an outcome).",
        "does not change “OPT-OFFLINE, all outcomes of S_0”, which ran once, with slack = 0.001.",
    ):
        assert words in text
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
    text = said(findings.past_findings(results))
    good, accepted = (
        results.count(name)[0, 0, :, 0].sum(-1) for name in ("n_accepted_good", "n_accepted")
    )
    fdr = tables.over_repetitions(1 - good / accepted, axis=0)
    assert f"of whom {with_interval(fdr)} were bad" in text
    assert "the past accepted 50 %, of whom 20 %" in text


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


def test_reasons_follow_the_options_of_a_setting():
    results = crafted({"plain": 50}, published="german_gender")
    assert "rows weighted" in " ".join(overview(results, 0).remarks)
    results.about["settings"][0]["options"] = {"weights": "none"}
    said = " ".join(overview(results, 0).remarks)
    assert "rows weighted" not in said
    assert "set: weights = none" in said


def test_no_sentence_about_a_run_as_released_is_false():
    names = ("plain", "exploit-fair", "fair-clf")
    results = crafted(dict.fromkeys(names, 50), published="german_gender", switches=list(SWITCHES))
    said = " ".join(overview(results, 0).remarks).partition("fair-clf")[0]
    for name in SWITCHES:
        assert DEVIATIONS[name].ours not in said
        assert name in said


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


def test_message_if_all_but_references_failed(rng):
    names = ("plain", "fairall-aligned", "ceiling")
    results = with_failures(make_results(rng, names, size=(3, 4), n=50), "plain", range(3))
    assert findings.nothing_found(results) == ""
    assert "each failed" in findings.nothing_found(with_failures(results, names[1], range(3)))
    assert findings.nothing_found(with_failures(results, names[1], range(2))) == ""
    references = make_results(rng, names[2:], size=(3, 4), n=50)
    assert findings.nothing_found(references) == ""


def test_assumptions_are_grouped(rng):
    names = ("plain", "extrapolation-published", "extrapolation-aligned", "wei-finite-aligned")
    sentences = findings.settings(make_results(rng, names, size=(1, 2)))[2:]
    assert len(sentences) == 2
    assert sentences[0].startswith(
        "“Extrapolation-published” and “Extrapolation-aligned” assume: At"
    )
    assert sentences[1].startswith("“Wei-finite-aligned” assumes: ")


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


def test_description_of_the_world_comes_first():
    assert findings.what_was_run(crafted({"plain": 50}, description="Some world.")).startswith(
        "Some world. 1 method decided"
    )
