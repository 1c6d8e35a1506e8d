"""The health of a program: lights that may be looked at at any time, and what they say."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from fairchance.audit.rates import anytime_interval
from fairchance.core.budget import FdrBudget
from fairchance.core.metrics import exact_interval
from fairchance.ledger.health import TINY, check_health, verdict
from fairchance.ledger.summary import GroupSummary, NextTested, Outcomes, Promise
from ledger_worlds import algorithm_1, certified, started
from round_records import a_pilot, a_round

LOOKS = 300
ERROR = 0.1
SURE = 1e-4  # the probability that a test of ours fails by chance


def exact_at_each_look(count, n, error):
    """Return the interval that is right for one look."""
    return exact_interval(count, n, 1 - error)


def first_miss(interval, means):
    """Return for each n the smallest count whose interval lies above the mean."""
    found, count = [], 0
    for n, mean in enumerate(means, start=1):
        while count > 0 and interval(count - 1, n, ERROR)[0] > mean:
            count -= 1
        while count <= n and interval(count, n, ERROR)[0] <= mean:
            count += 1
        found.append(count)
    return np.array(found)


def ever_wrong(rates, interval, runs=4000):
    """Return in how many runs the interval ever misses the mean of the rates so far."""
    n = np.arange(1, LOOKS + 1)
    means = np.cumsum(rates) / n
    most, fewest = first_miss(interval, means), n - first_miss(interval, 1 - means)
    counts = np.cumsum(np.random.default_rng(7).random((runs, LOOKS)) < rates, axis=1)
    return int(((counts >= most) | (counts <= fewest)).any(axis=1).sum())


@pytest.mark.parametrize("change", [0.0, 0.12])
def test_intervals_are_right_however_often_they_are_looked_at(change):
    """The rate is constant, or changes with the policy: then they are about its mean so far."""
    rates = 0.15 + change * np.sign(np.sin(np.arange(LOOKS) / 20))
    assert binomtest(ever_wrong(rates, anytime_interval), 4000, ERROR, "greater").pvalue > SURE
    naive = ever_wrong(rates, exact_at_each_look)
    assert binomtest(naive, 4000, ERROR, "greater").pvalue < SURE


def test_intervals_are_hardly_wider_than_they_must_be():
    for bad, n in ((3, 20), (60, 400), (1500, 10_000)):
        low, high = anytime_interval(bad, n, 0.05)
        least, most = exact_interval(bad, n)
        assert low < least < bad / n < most < high
        assert high - low < 1.9 * (most - least)
    assert anytime_interval(0, 50, 0.05)[0] == 0.0
    assert anytime_interval(50, 50, 0.05)[1] == 1.0


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Return the summary of a program after one round, without groups and with nothing to say."""
    url = f"sqlite:///{tmp_path_factory.mktemp('health')}/ledger.db"
    program, _, (one,) = started(url, algorithm_1(learner=LogisticRegression()), n_rounds=1)
    program.decide(one.people.X, sensitive_features=one.people.group)
    summary = program.summary()
    first = replace(
        summary.rounds[0],
        records=(a_round(),),
        outcomes=Outcomes(90, 10, 0, 0),
        least_chance=0.02,
        n_hardly=0,
        n_people=1000,
        n_exploited=90,
        n_explored=10,
        age=10.0,
    )
    return replace(
        summary,
        promise=Promise(alpha=0.15),
        rounds=(first,),
        groups=(),
        outcomes=Outcomes(90, 10, 0, 0),
        exploited=Outcomes(82, 8, 0, 0),
        explored=Outcomes(8, 2, 0, 0),
        overridden=Outcomes(0, 0, 0, 0),
    )


def group(name, n, accepted, bad, known=None, explored=0, explorable=0, pending=None):
    known = accepted if known is None else known
    outcomes = Outcomes(known - bad, bad, 0, accepted - known)
    return GroupSummary(
        "sex", name, n, accepted, explored, 0, outcomes, 0, explorable, pending or {}
    )


def lights(summary, **options):
    """Return the light of each question and group that is not green."""
    return {
        (check.question, check.group): check.light
        for check in check_health(summary, **options)
        if check.light != "green"
    }


def test_everything_green_is_the_only_way_to_need_no_attention(plain):
    assert lights(plain) == {}
    assert "Nothing needs attention" in verdict(check_health(plain))
    others = [
        replace(plain, outcomes=Outcomes(80, 20, 0, 0)),
        replace(plain, n_expired=1),
        replace(plain, groups=(group("f", 500, 50, 1), group("m", 500, 100, 2))),
    ]
    for other in others:
        assert "Nothing needs attention" not in verdict(check_health(other))


def test_an_empty_explore_region_is_no_excuse(plain):
    """All applicants count as known, and those who are rejected have no chance."""
    none = replace(
        plain.rounds[0],
        n_explored=0,
        n_exploited=400,
        budget=20.0,
        records=(a_round(n_exploit_region=1000),),
    )
    rounds = (plain.rounds[0], *(replace(none, round=t) for t in (2, 3, 4)))
    assert lights(replace(plain, rounds=rounds)) == {("exploration", ""): "amber"}
    accepts_all = [replace(row, n_exploited=1000) for row in rounds[1:]]
    assert ("exploration", "") not in lights(replace(plain, rounds=(rounds[0], *accepts_all)))


def test_a_group_that_is_hurt_is_seen(plain):
    """The counts are those of a trial in which nothing was said."""
    first = plain.rounds[0]
    none = replace(first, n_explored=0, n_exploited=40, budget=0.3)
    rounds = (first, *(replace(none, round=t) for t in range(2, 40)))
    women = group("women", 4000, 404, bad=78, explored=1, explorable=3000)
    men = group("men", 4000, 1347, bad=130, explored=40, explorable=2500)
    hurt = replace(
        plain,
        rounds=rounds,
        groups=(women, men),
        outcomes=Outcomes(1543, 208, 0, 0),
        explored=Outcomes(16, 25, 0, 0),
    )
    assert lights(hurt) == {
        ("acceptance", "sex women"): "red",
        ("mistakes", "sex women"): "amber",  # 0.156 to 0.235 was for one look at one group
        ("mistakes of the explored", ""): "amber",
        ("exploration", "sex women"): "amber",
        ("exploration", ""): "amber",
    }
    (first, *_) = checks = check_health(hurt)
    assert first.value == pytest.approx((404 / 4000) / (1347 / 4000))
    assert first.low < first.value < first.high < first.bound == 0.8
    assert verdict(checks).startswith("RED: sex women: accepted at 0.30 of the rate of sex men")
    assert "38 rounds (38 of 39 rounds)" in next(
        check.finding for check in checks if (check.question, check.group) == ("exploration", "")
    )
    more = replace(women, n_people=40_000, n_accepted=4040, outcomes=Outcomes(3260, 780, 0, 0))
    red = replace(hurt, groups=(more, men))
    assert lights(red)["mistakes", "sex women"] == "red"
    assert "women: 19.3 % of 4,040" in verdict(check_health(red))


def test_the_whole_program_and_certified_rounds_are_tested(plain):
    assert lights(replace(plain, outcomes=Outcomes(700, 300, 0, 0))) == {("mistakes", ""): "red"}
    kept = replace(plain.rounds[0], certified=True, outcomes=Outcomes(700, 300, 0, 0))
    broken = replace(plain, rounds=(kept,))
    assert lights(broken) == {("mistakes of certified rounds", ""): "red"}
    nothing = Outcomes(0, 0, 0, 100)
    unknown = replace(plain, outcomes=nothing, explored=nothing)
    assert lights(unknown) == {("mistakes", ""): "amber"}
    (check,) = [one for one in check_health(unknown) if one.question == "mistakes"]
    assert math.isnan(check.value)
    assert (check.low, check.high, check.bound) == (0.0, 1.0, 0.15)
    assert lights(replace(unknown, promise=Promise())) == {}  # there is no bound


def test_whether_the_past_policy_kept_alpha_is_judged_by_round_1(plain):
    """The history looks fine, since it was selected by the outcome; the round that follows not."""
    budget = FdrBudget(alpha=0.15)
    past = replace(
        plain,
        promise=replace(plain.promise, budget=budget),
        n_history=1000,
        history=Outcomes(540, 60, 0, 0),
    )
    (check,) = [one for one in check_health(past) if one.question == "past policy"]
    assert (check.light, check.value) == ("green", 0.1)
    assert (check.low, check.high) == exact_interval(60, 600)
    assert "60 % of the history" in check.finding
    followed = replace(past.rounds[0], records=(a_round(follows="matched"),))
    for outcomes, light in ((Outcomes(70, 30, 0, 0), "amber"), (Outcomes(88, 12, 0, 0), "green")):
        own = replace(past, rounds=(replace(followed, outcomes=outcomes),))
        (check,) = [one for one in check_health(own) if one.question == "past policy"]
        assert (check.light, check.low, check.high) == (light, *exact_interval(outcomes.bad, 100))
    learned = replace(followed, records=(a_round(),), outcomes=Outcomes(70, 30, 0, 0))
    (check,) = [
        one
        for one in check_health(replace(past, rounds=(learned,)))
        if one.question == "past policy"
    ]
    assert check.value == 0.1  # a learned round says nothing about f_0
    assert not [one for one in check_health(plain) if one.question == "past policy"]


def test_what_the_cap_on_weights_does_is_said(plain):
    record = a_round(
        n_outcomes=812,
        effective_sample_size=640.4,
        capped_share=0.25,
        estimated_fdr=0.11,
        uncapped_fdr=0.17,
    )
    rounds = (replace(plain.rounds[0], records=(record,)),)
    (check,) = [
        one for one in check_health(replace(plain, rounds=rounds)) if one.question == "weights"
    ]
    for said in ("812", "640", "25 %", "11 %", "17 %"):
        assert said in check.finding
    assert check.value == 0.25


def test_a_few_outcomes_make_no_light(plain):
    few = (group("f", 10, 3, bad=2), group("m", 990, 300, bad=30))
    assert lights(replace(plain, groups=few)) == {}
    tiny = (group("x", 10, 10, bad=0), group("m", 990, 300, bad=30), group("f", 900, 280, bad=20))
    assert lights(replace(plain, groups=tiny)) == {}  # x is no measure for the others


def test_late_outcomes_are_counted_for_each_group(plain):
    f = group("f", 500, 100, bad=5, known=85, pending={1: 15})
    m = group("m", 500, 100, bad=5, known=95, pending={1: 5})
    rounds = (replace(plain.rounds[0], outcomes=Outcomes(170, 10, 0, 20)),)
    late = replace(plain, groups=(f, m), rounds=rounds)
    assert lights(late, late=9.0) == {("pending", ""): "amber", ("pending", "sex f"): "amber"}
    assert lights(late, late=11.0) == {}


def test_a_tiny_chance_is_called_tiny(plain):
    (check,) = [one for one in check_health(plain) if one.question == "chance"]
    assert (check.light, check.value, check.bound) == ("green", 0.02, TINY)
    assert "at least 2 %" in check.finding
    hardly = replace(plain.rounds[0], least_chance=1e-23, n_hardly=51)
    (check,) = [
        one for one in check_health(replace(plain, rounds=(hardly,))) if one.light != "green"
    ]
    assert (check.question, check.value) == ("chance", 1e-23)
    assert "51 of 1,000 applicants" in check.finding
    assert "the least under 0.001 %" in check.finding


def test_chances_are_those_of_the_recorded_draw(tmp_path):
    learner = LogisticRegression()
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, _, batches = started(url, algorithm_1(learner=learner), n_rounds=2)
    for one in batches:
        decided = program.decide(one.people.X, sensitive_features=one.people.group)
        chances = decided.propensity[~decided.exploit & (decided.propensity > 0)]
        last = program.summary().rounds[-1]
        assert last.least_chance == pytest.approx(chances.min())
        assert last.n_hardly == (chances < TINY).sum()
        of_groups = program.summary().groups
        assert sum(one.n_explored for one in of_groups) <= sum(
            one.n_explorable for one in of_groups
        )


def test_missing_outcomes_that_hold_up_the_tests_are_named(plain, monkeypatch):
    record = a_pilot(status="certified")
    last = replace(plain.rounds[0], records=(record,), held_up=({"group": None, "round": 1},))
    waits = NextTested(1, 2, 0, 0, None, 61, oldest=1, ids=("a17", "a18", "a19", "a20", "a21"))
    held_up = replace(plain, rounds=(last,), promise=Promise(alpha=0.15, delta=0.1, maturity=1))
    monkeypatch.setattr(type(plain), "next_tested", lambda *_: waits)
    (check,) = [one for one in check_health(held_up) if one.light != "green"]
    assert check.question == "tests"
    assert all(part in check.finding for part in ("Round 1", "'a17'", "'a18'", "3 more"))
    assert "patience" in check.meaning
    waits = replace(waits, oldest=2)  # outcomes of round 1 arrived, and round 2 has its own time
    assert lights(held_up) == {}


@pytest.mark.parametrize("certify", ["overall", "per_group"])
def test_status_warns_of_missing_outcomes_in_the_same_round_as_decide(tmp_path, certify):
    """Round 1 misses an outcome for long, then round 2; later rounds miss none."""
    classifier = certified(learner=LogisticRegression(), certify=certify)
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, _, batches = started(url, classifier, n_batch=120, n_rounds=15)
    warned, ambers, missing = [], [], {}
    for t, one in enumerate(batches, start=1):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            decided = program.decide(one.people.X, sensitive_features=one.people.group)
        named = [str(warning.message) for warning in caught]
        warned += [t for text in named if "patience=" in text]
        known = decided.accepted.copy()
        if t <= 2:
            silent = np.flatnonzero(known & (one.people.group == "A"))[2]
            missing[t], known[silent] = decided.ids[silent], False
        tests = [check for check in check_health(program.summary()) if check.question == "tests"]
        ambers += [t for check in tests if check.light == "amber"]
        oldest = min(missing)
        for part in (f"ound {oldest} ", f"'{missing[oldest]}'"):
            assert all(part in check.finding for check in tests)
        program.observe(decided.ids[known], one.outcome[known])
        if t == 8:
            program.withdraw([missing.pop(1)])
            assert ("tests", "") not in lights(program.summary())
    assert warned == ambers
    assert warned == [7, 8, 14, 15]


def test_recorded_differences_of_recent_rounds_are_shown(plain):
    blank = {"column": "age", "code": "missing", "n": 700, "of": 700, "usual": 0.04}
    rounds = tuple(
        replace(plain.rounds[0], round=t, unlike=(blank | {"since": "history", "stops": t == 2},))
        for t in range(1, 5)
    )
    bad = {"bad": 155, "of": 178, "expected": 0.15, "stops": True}
    seen = check_health(replace(plain, rounds=rounds, unlike_outcomes={31: bad}))
    seen = [check.finding for check in seen if check.light != "green"]
    assert ["anyway" in text for text in seen] == [True, False, False, False]
    assert "700 of 700 applicants" in seen[0]
    assert "entry 31: 155 of 178" in seen[3]


RATE = {"f": 0.24, "m": 0.30, "x": 0.30}  # four fifths, and α, are met exactly


def programs_with_red(plain, runs, interval=None, looks=12):
    """Return how many programs that keep every bound are ever red, looked at after each round."""
    seen = 0
    for seed in range(runs):
        rng = np.random.default_rng([5, seed])
        counts = {name: np.zeros(3, int) for name in RATE}
        for _ in range(looks):
            for name, rate in RATE.items():
                accepted = rng.binomial(200, rate)
                counts[name] += 200, accepted, rng.binomial(accepted, 0.15)
            if is_red(plain, counts, interval):
                seen += 1
                break
    return seen


def is_red(plain, counts, interval):
    groups = tuple(group(name, *map(int, row)) for name, row in counts.items())
    if interval is None:
        summary = replace(plain, groups=groups, outcomes=_all(groups))
        return any(check.light == "red" for check in check_health(summary))
    ends = {one.group: interval(one.outcomes.bad, one.outcomes.known, 0.05) for one in groups}
    return any(low > 0.15 for low, _ in ends.values())


def _all(groups):
    bad = sum(one.outcomes.bad for one in groups)
    return Outcomes(sum(one.outcomes.good for one in groups), bad, 0, 0)


@pytest.mark.parametrize("runs", [60, pytest.param(600, marks=pytest.mark.long)])
def test_a_healthy_program_is_hardly_ever_red(plain, runs):
    assert binomtest(programs_with_red(plain, runs), runs, 0.05, "greater").pvalue > SURE
    naive = programs_with_red(plain, 400, exact_at_each_look)
    assert binomtest(naive, 400, 0.05, "greater").pvalue < SURE
