"""Charts of runs and audits: specifications are valid, and data equal counts made another way."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import fairchance as fc
from charts import HOSTILE, only_values_and_titles, rows_of
from fairchance import plot
from fairchance.audit import DecisionLog, Rule, calibration, drift, evaluate, groups
from fairchance.audit.rates import WHOLE, anytime_interval
from fairchance.errors import InputError, LearningWarning
from fairchance.plot.rows import freezes, restarts
from fairchance.simulate.populations import draw_applicants
from ledger_worlds import algorithm_1, started
from methods.certified.known_truth import Slope, play, start
from round_records import a_pilot


def test_only_public_names_are_listed():
    assert [name for name in dir(plot) if not name.startswith("__")] == plot.__all__
    assert all(getattr(plot, name).__doc__ for name in plot.__all__)


def test_without_altair_its_extra_is_named():
    code = "import sys; sys.modules['altair'] = None; import fairchance.plot"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "charts need altair; `pip install 'fairchance[report]'`" in done.stderr


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Return a program, its classifier's twin, and the outcomes of accepted applicants by round."""
    url = f"sqlite:///{tmp_path_factory.mktemp('ledger')}/x.db"
    program, twin, batches = started(url, algorithm_1(), n_rounds=4)
    seen = []
    for t, batch in enumerate(batches):
        options = {"sensitive_features": batch.people.group}
        decided = program.decide(batch.people.X, **options)
        twin.decide(batch.people.X, ids=decided.ids, **options)
        good = batch.outcome[decided.accepted]
        group = batch.people.group[decided.accepted]
        seen.append((len(batch.people), good, group, decided))
        if t < 3:  # the last outcomes are still to come
            for who in (program, twin):
                who.observe(decided.ids[decided.accepted], good)
    return program, twin, seen


def test_rounds_of_programs_and_classifiers(played):
    program, twin, seen = played
    for x in (program, program.summary(), twin):
        chart = plot.rounds(x)
        bars = rows_of(chart, "from")
        for t, (n, _, _, decided) in enumerate(seen):
            sure, explored = (bar["value"] for bar in bars if bar["rounds"] == str(t + 1))
            assert explored == pytest.approx(decided.explored.sum() / n, rel=1e-4)
            assert sure + explored == pytest.approx(decided.accepted.sum() / n, rel=1e-4)
        points = rows_of(chart, "low")
        assert len(points) == 3
        for (_, good, _, _), point in zip(seen, points, strict=False):
            bad = int((good == 0).sum())
            interval = anytime_interval(bad, good.size, WHOLE)
            assert (point["k"], point["of"]) == (bad, good.size)
            assert (point["low"], point["high"]) == pytest.approx(interval, rel=1e-4)
        assert "α = 15 %" in {row["text"] for row in rows_of(chart, "text")}


def test_outcomes_groups_and_what_was_earned(played):
    program, twin, seen = played
    for x in (program, twin):
        ends = {bar["rounds"]: bar["y2"] for bar in rows_of(plot.outcomes(x), "from")}
        assert ends == {str(t + 1): good.size for t, (_, good, _, _) in enumerate(seen)}
        waiting = [bar for bar in rows_of(plot.outcomes(x), "from") if bar["rounds"] == "4"]
        assert {bar["name"]: bar["value"] for bar in waiting}["still to come"] == seen[3][1].size
        rows = {(row["name"], row["row"]): row for row in rows_of(plot.groups(x), "row")}
        for name in ("A", "B"):
            bad = sum(int(((good == 0) & (group == name)).sum()) for _, good, group, _ in seen[:3])
            assert rows["Mistakes", name]["k"] == bad
        earned = {row["tip"][:7]: row["y"] for row in rows_of(plot.trade_off(x), "tip")}
        for t, (n, good, _, _) in enumerate(seen[:3]):
            wanted = (500.0 * good - 300).sum() / n
            assert earned[f"round {t + 1}"] == pytest.approx(wanted, rel=1e-4)
        region, explored = rows_of(plot.coverage(x), "value")
        assert region["value"] == [
            pytest.approx(decided.exploit.mean(), rel=1e-4) for *_, decided in seen
        ]
        assert explored["value"][0] == pytest.approx(seen[0][3].explored.mean(), rel=1e-4)


def test_a_default_budget_has_a_line_at_alpha(rng):
    X = rng.normal(size=(400, 2))
    classifier = fc.PartialFeedbackClassifier(random_state=0).fit(X, X[:, 0] > 0)
    classifier.decide(X)
    assert [row["at"] for row in rows_of(plot.rounds(classifier), "at")] == [0.15]


def test_what_cannot_be_drawn_is_said(played):
    for wrong in (object(), fc.PartialFeedbackClassifier()):
        with pytest.raises(InputError, match=type(wrong).__name__):
            plot.rounds(wrong)
    X = np.random.default_rng(0).normal(size=(60, 2))
    fresh = fc.PartialFeedbackClassifier(random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(InputError):
        plot.rounds(fresh)
    fresh.decide(X)
    with pytest.raises(InputError, match="sensitive_features"):
        plot.groups(fresh)
    with pytest.raises(InputError):
        plot.certificate(played[1])


def summary(n_rounds, group=None):
    """Return what charts read of the summary of a certified program."""
    counted = SimpleNamespace(good=80, bad=10, not_taken=0, withdrawn=1, pending=0)
    numbers = {"n_people": 200, "n_accepted": 91, "n_explored": 9, "outcomes": counted}
    record = a_pilot(
        group=group,
        status="certified",
        n_people=200,
        share=0.4,
        certified_from=0.1,
        certified_to=0.5,
        delta_spent=0.1,
        curve=tuple(fc.CurvePoint(bound, 0.4, 7.0, 0.1, bound < 0.2) for bound in (0.1, 0.2)),
    )
    rounds = [
        SimpleNamespace(round=t, records=(replace(record, round=t),), withdrawn=(), **numbers)
        for t in range(1, n_rounds + 1)
    ]
    names = {"attribute": group, "group": group, "error": WHOLE, "unplaced": None}
    groups = [SimpleNamespace(**names, **numbers)]
    promise = SimpleNamespace(alpha=0.15, utility=fc.Revenue(200, 500))
    records = [record for one in rounds for record in one.records]
    return SimpleNamespace(
        promise=promise, rounds=rounds, records=records, groups=groups, currency="EUR"
    )


def test_axes_show_intervals_whole(played):
    rounds = plot.rounds(played[0])
    groups = plot.groups(played[0])
    for chart, at, along in ((rounds, 1, "y"), (groups, 0, "x"), (groups, 1, "x")):
        shown = chart.to_dict()
        layers = shown["vconcat"][at]["layer"]
        (rule,) = (one for one in layers if one["encoding"].get(along, {}).get("field") == "low")
        data = rule.get("data", shown["vconcat"][at].get("data"))
        highest = max(row["high"] for row in shown["datasets"][data["name"]])
        assert rule["encoding"][along]["scale"]["domain"][1] > highest


def test_money_has_its_currency():
    for draw in (plot.trade_off, plot.curve):
        assert "(EUR)" in json.dumps(draw(summary(2)).to_dict())


def test_500_rounds_are_shown_in_spans():
    x = summary(500)
    for chart in (plot.rounds(x), plot.trade_off(x), plot.outcomes(x)):
        spec = chart.to_dict()
        assert max(map(len, spec["datasets"].values())) <= 4 * 60
        assert len(json.dumps(spec)) < 60_000
    first, *_, last = rows_of(plot.rounds(x), "low")
    assert (first["rounds"], last["rounds"]) == ("1 to 9", "496 to 500")
    assert (first["k"], last["of"]) == (90, 450)
    assert len(rows_of(plot.certificate(x), "certified_to")) <= 120


def test_curve_says_what_is_certified():
    shown = rows_of(plot.curve(summary(2)), "bound")
    assert [(row["bound"], row["earned"], row["name"]) for row in shown] == [
        (0.1, 7.0, "certified"),
        (0.2, 7.0, "only estimated"),
    ]
    alone = summary(1)
    (record,) = alone.rounds[0].records
    alone.rounds[0].records = (replace(record, curve=record.curve[:1]),)
    chart = plot.curve(alone).to_dict()
    assert chart["title"]["text"].endswith("(certified)")
    assert chart["layer"][1]["encoding"]["color"]["legend"] is None
    empty = summary(1)
    empty.rounds[0].records = (replace(record, curve=()),)
    with pytest.raises(InputError):
        plot.curve(empty)


def test_freezes_and_restarts_match_the_engine(rng):
    """A population turns bad, and an outcome is corrected while a pilot runs."""
    good, worse = Slope(intercept=1.5), Slope(intercept=0.3)
    classifier = start(good, rng, horizon=40)
    (engine,) = classifier._engines
    frozen, restarted = [], []
    for t in range(1, 31):
        before, ladders = engine.stage.restarts, len(engine.ladders)
        people = draw_applicants(good if t < 14 else worse, 400, rng)
        decided = classifier.decide(people.people.X)
        if len(engine.ladders) > ladders:
            frozen.append(t)
        ids, outcomes = decided.ids[decided.accepted], people.outcome[decided.accepted]
        classifier.observe(ids, outcomes)
        if t == 2:
            with pytest.warns(LearningWarning, match="3"):
                classifier.correct(ids[:1], 1 - outcomes[:1])
        if engine.stage.restarts > before:
            restarted.append(t + 1)
    records = classifier.rounds_
    assert freezes(records) == frozen
    assert restarts(records) == restarted
    assert len(restarted) >= 2
    assert restarted[0] == 3


def test_restarts_are_drawn(rng):
    classifier = start(Slope(), rng, horizon=12)
    play(classifier, Slope(), rng, n=300, rounds=5, truth=False)
    assert "tests began again" not in names_of(plot.certificate(classifier))
    last = classifier._rounds[-1]
    classifier._rounds[-1] = replace(last, tests_began=last.round)
    assert "tests began again" in names_of(plot.certificate(classifier))


def names_of(chart):
    return {row["name"] for row in rows_of(chart, "name")} - {"so far"}


def test_names_of_users_are_values_or_titles_only():
    program = summary(3, HOSTILE)
    for draw in (plot.groups, plot.certificate, plot.curve):
        assert only_values_and_titles(draw(program))


def test_files_are_the_same_each_time(tmp_path):
    chart = plot.certificate(summary(3, HOSTILE))
    files = [plot.save(chart, tmp_path / name) for name in ("one", "two")]
    for one, two in zip(*files, strict=True):
        assert one.read_bytes() == two.read_bytes()
    vector, image = files[0]
    assert "&lt;script&gt;" in vector.read_text()
    assert image.read_bytes().startswith(b"\x89PNG")
    assert plot.save(chart, f"{tmp_path}/three.png") == [tmp_path / "three.png"]
    assert {path.name for path in tmp_path.glob("three*")} == {"three.png"}


@pytest.fixture(scope="module")
def log():
    """Return a log that says nothing about the lowest scores."""
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    propensity = np.where(score > 0.3, 0.5, 0.0)
    accepted = rng.random(2000) < propensity
    outcome = np.where(accepted, rng.random(2000) < score, np.nan)
    rounds = 1 + np.arange(2000) // 500
    return DecisionLog(accepted, propensity, outcome, score=score, round=rounds)


def test_cut_offs_show_bounds_where_nothing_is_identified(log):
    cuts = {cut: Rule("score", ">=", cut) for cut in (0.1, 0.5, 0.9)}
    found = evaluate(log, cuts, alpha=0.2, utility=fc.Revenue(200, 500))
    chart = plot.cut_offs(found, currency=HOSTILE)
    rows = rows_of(chart, "low", "x")
    assert len(rows) == 9
    mistakes, accepted, profit = rows[:3], rows[3:6], rows[6:]
    for shown, measure in (
        (mistakes, "false_discovery_rate"),
        (accepted, "selection_rate"),
        (profit, "profit"),
    ):
        for row, one in zip(shown, found.values(), strict=True):
            wanted = one.of(measure)
            known = not np.isnan(wanted.value)
            ends = (wanted.low, wanted.high) if known else wanted.possible
            assert (row["low"], row["high"]) == pytest.approx(ends, rel=1e-4)
            assert (row["value"] is not None) == known
            assert row["name"].startswith("estimate" if known else "not identified")
    assert [row["value"] is None for row in mistakes] == [True, False, False]
    bounds = found[0.1].of("false_discovery_rate")  # nothing looks surer than an estimate
    assert mistakes[0]["high"] == pytest.approx(bounds.high, rel=1e-4)
    assert bounds.high > bounds.most
    assert len(rows_of(plot.cut_offs(found, measures=["profit"]), "low", "x")) == 3
    assert only_values_and_titles(chart)


def test_an_interval_of_few_outcomes_does_not_flatten_the_others(log):
    cuts = {cut: Rule("score", ">=", cut) for cut in (0.5, 0.7, 0.99)}
    found = evaluate(log, cuts, alpha=0.2)
    rates = [one.of("false_discovery_rate") for one in found.values()]
    assert rates[-1].n_outcomes < 100 < rates[-2].n_outcomes

    def top(shown):
        chart = plot.cut_offs(shown, measures=["false_discovery_rate"]).to_dict()
        return chart["layer"][0]["encoding"]["y"]["scale"]["domain"][1]

    assert max(row.high for row in rates[:-1]) < top(found) < rates[-1].high
    assert top({0.99: found[0.99]}) > rates[-1].high


def test_calibration_gaps_between_groups_are_in_points(log):
    half = np.where(np.arange(2000) % 2, "a", "b")
    columns = (log.accepted, log.propensity, log.outcome)
    audit = groups(DecisionLog(*columns, score=log.score, sensitive_features=half))
    rows = rows_of(plot.group_audit(audit), "row")
    wanted = [row.recorded for row in audit.measured if row.measure == "calibration" and row.group]
    shown = [row["value"] for row in rows if row["name"] == "as recorded"][-2:]
    assert shown == pytest.approx([100 * value for value in wanted], rel=1e-4)


def test_calibration_and_drift_show_what_the_audit_found(log):
    bins = calibration(log, bins=4)
    rows = rows_of(plot.calibration(bins), "n")
    assert [row["value"] for row in rows[::2]] == [
        None if np.isnan(part.recorded) else pytest.approx(part.recorded, rel=1e-4) for part in bins
    ]
    corrected = rows[1::2]
    for row, part in zip(corrected, bins, strict=True):
        assert (row["x"], row["low"], row["high"]) == pytest.approx(
            (part.score, part.low, part.high), rel=1e-4
        )
    by_round = drift(log)
    shown = {row["name"]: row for row in rows_of(plot.drift(by_round, alpha=0.2), "low", "x")}
    for name, key in (("mean score", "score"), ("bad", "bad"), ("index", "stability")):
        wanted = [getattr(row, key) for row in by_round]
        values = [np.nan if value is None else value for value in shown[name]["value"]]
        assert values == pytest.approx(wanted, rel=1e-4, nan_ok=True)
    # One round has nothing that its scores could be compared with.
    assert len(rows_of(plot.drift(by_round[:1]), "low", "x")) == 3
