"""Charts: specifications are valid, and their data equal counts made another way."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest

import fairchance as fc
from experiments.test_tables import make_results
from experiments.test_verdict import exact
from fairchance import plot
from fairchance.audit import DecisionLog, Rule, calibration, drift, evaluate, groups
from fairchance.errors import InputError
from ledger_worlds import algorithm_1, started

METHODS = ("plain", "no-exploration", "certified", "fair-clf", "own:first", "ceiling")
HOSTILE = '"><script>alert(1)</script>${x} datum.y [a.b]\\'


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
    named = {name: c for name, c in colours_of(drawn["fdr"]).items() if c != plot._GREY}
    assert len(named) == len(set(named.values())) == 4
    assert f"{HOSTILE}, ceiling" in named
    mine = colours_of(plot.metric(results, "revenue", highlight=["own:first"]))
    assert [c for c in mine.values() if c != plot._GREY] == [mine[f"{HOSTILE}, own:first"]]
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
            interval = binomtest(bad, good.size).proportion_ci(0.95, method="exact")
            assert (point["k"], point["of"]) == (bad, good.size)
            assert (point["low"], point["high"]) == pytest.approx(tuple(interval), rel=1e-4)
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
    with pytest.raises(InputError, match="decide a batch"):
        plot.rounds(fresh)
    fresh.decide(X)
    with pytest.raises(InputError, match="sensitive_features"):
        plot.groups(fresh)
    with pytest.raises(InputError, match="certificates"):
        plot.certificate(played[1])


def summary(n_rounds, group=None):
    """Return what charts read of the summary of a certified program."""
    counted = SimpleNamespace(good=80, bad=10, indeterminate=1, pending=0)
    numbers = {"n_people": 200, "n_accepted": 91, "n_explored": 9, "outcomes": counted}
    point = {"share": 0.4, "earned": 7.0, "estimated_fdr": 0.1, "certified": True}
    curve = [point | {"bound": 0.1}, point | {"bound": 0.2, "certified": False}]
    record = {"group": group, "status": "certified", "n_people": 200, "share": 0.4, "ladder": 0}
    record |= {"log_wealth": 3.0, "certified_from": 0.1, "certified_to": 0.5, "delta_spent": 0.1}
    record |= {"next_log_wealth": 1.0, "next_threshold": 4.0, "curve": curve}
    rounds = [
        SimpleNamespace(round=t, records=(record | {"round": t},), **numbers)
        for t in range(1, n_rounds + 1)
    ]
    groups = [SimpleNamespace(attribute=group, group=group, **numbers)]
    promise = SimpleNamespace(alpha=0.15, utility=fc.Revenue(200, 500))
    return SimpleNamespace(promise=promise, rounds=rounds, groups=groups)


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
    del alone.rounds[0].records[0]["curve"][1]
    chart = plot.curve(alone).to_dict()
    assert chart["title"]["text"].endswith("(certified)")
    assert chart["layer"][1]["encoding"]["color"]["legend"] is None
    empty = summary(1)
    empty.rounds[0].records[0]["curve"] = []
    with pytest.raises(InputError, match="outcomes"):
        plot.curve(empty)


def test_names_of_users_are_values_or_titles_only(drawn):
    program = summary(3, HOSTILE)
    charts = [draw(program) for draw in (plot.groups, plot.certificate, plot.curve)]
    for chart in (*drawn.values(), *charts):
        for text, path in walk(chart.to_dict()):
            if HOSTILE in text:
                allowed = "datasets" in path or path[-1] in ("text", "title")
                assert allowed or path[-2] in ("domain", "sort"), path


def test_files_are_the_same_each_time(drawn, tmp_path):
    files = [plot.save(drawn["compare"], tmp_path / name) for name in ("one", "two")]
    for one, two in zip(*files, strict=True):
        assert one.read_bytes() == two.read_bytes()
    vector, image = files[0]
    assert "&lt;script&gt;" in vector.read_text()
    assert image.read_bytes().startswith(b"\x89PNG")


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
    texts = [path for text, path in walk(chart.to_dict()) if HOSTILE in text]
    assert texts
    assert all("datasets" in path or path[-1] in ("text", "title") for path in texts)


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
        assert shown[name]["value"] == pytest.approx(wanted, rel=1e-4)
    assert len(rows_of(plot.drift(by_round[:1]), "low", "x")) == 4
