"""Open rounds: the policy is a value, and a round is closed with all that it decided."""

from __future__ import annotations

import copy
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairchance import CertifiedClassifier
from fairchance.errors import InputError, LearningWarning
from fairchance.ledger.verification.compare import first_other_content
from fairchance.methods.certified.evidence import Dependence
from fairchance.methods.certified.ladder import Ladder, Positions
from fairchance.methods.certified.policy import CertifiedPolicy
from fairchance.methods.storage import dumps, loads
from methods.certified.desk import Desk, certified_desk
from methods.certified.known_truth import ALPHA, DELTA, QUICK, rngs, too_many
from methods.certified.ladders import LEVEL, make_ladder
from methods.certified.lender import Town, breaks_the_bound, open_program, tell

TOWN = Town(bad=0.1, slope=1.5, lender=(0.6, 0.3), takes=(0.9, 0.8))
RULES = {
    "own": {},
    "beside the lender": {},
    "limits and floor": {"floor": 0.02},
    "persons and shock": {"shock": 0.01, "per_person": 2},
    "patience": {"patience": 1, "maturity": 1},
}


def month(rng, kind, n=120):
    """Return applicants of a month, and the options to decide on them."""
    people = TOWN.draw(n, rng)
    options = {}
    if kind == "beside the lender":
        options["incumbent"] = people.incumbent
    if kind == "persons and shock":
        options |= {"persons": rng.integers(0, n // 2, n)}
        options["barred"] = rng.random(n) < 0.1
    return people, options


def cut(options, rows):
    return {name: values[rows] for name, values in options.items()}


def by_parts(classifier, people, options, ids, parts, ramp=1.0):
    """Decide a month in parts and close the round; return the decisions in the order of rows."""
    policy = classifier.open_round(len(people), incumbent="incumbent" in options, ramp=ramp)
    answers = [policy.decide(people.X[rows], ids=ids[rows], **cut(options, rows)) for rows in parts]
    classifier.close_round(answers)
    accepted, p = np.empty(len(people), bool), np.empty(len(people))
    for rows, answer in zip(parts, answers, strict=True):
        accepted[rows], p[rows] = answer.accepted, answer.propensity
    return accepted, p


def wealth(classifier):
    ladders = classifier._engines[0].ladders
    return np.concatenate([test.wealth.log.ravel() for one in ladders for test in one.tests])


@settings(max_examples=6)
@given(st.sampled_from(sorted(RULES)), st.integers(0, 2**20), st.data())
def test_pieces_in_any_order_are_one_batch(kind, seed, data):
    rng = np.random.default_rng(seed)
    whole = open_program(TOWN, rng, **RULES[kind])
    pieces = copy.deepcopy(whole)
    ramp = 0.7 if kind == "beside the lender" else 1.0
    for t in range(3):
        people, options = month(rng, kind)
        ids = np.arange(10_000 * (t + 1), 10_000 * (t + 1) + len(people))
        order = rng.permutation(len(people))
        ends = data.draw(st.sets(st.integers(1, len(people) - 1), max_size=8))
        parts = np.split(order, sorted(ends))
        if t == 2:
            parts = [order[i : i + 1] for i in range(order.size)]  # one by one
        decided = whole.decide(people.X, ids=ids, ramp=ramp, **options)
        accepted, p = by_parts(pieces, people, options, ids, parts, ramp)
        np.testing.assert_array_equal(accepted, decided.accepted)
        np.testing.assert_allclose(p, decided.propensity, rtol=1e-12, atol=1e-12)
        for classifier in (whole, pieces):
            tell(classifier, people, decided)
        np.testing.assert_allclose(wealth(pieces), wealth(whole), rtol=1e-9, atol=1e-12)
        assert repr(pieces.rounds_) == repr(whole.rounds_)  # NaN included
    assert pieces.group_counts_ == whole.group_counts_


def test_a_policy_is_small_and_travels(rng):
    desk = certified_desk()
    policy = desk.classifier.open_round()
    content = dumps(policy)
    assert len(content) < 300_000
    again = loads(content, holds=CertifiedPolicy)
    X, ids = rng.normal(size=(50, 1)), np.arange(90_000, 90_050)
    one, two = (each.decide(X, ids=ids) for each in (policy, again))
    np.testing.assert_array_equal(one.accepted, two.accepted)
    np.testing.assert_array_equal(one.propensity, two.propensity)
    assert (again.status, again.certified, again.round) == (one.status, one.certified, one.round)
    assert set(again.versions) == {"fairchance", "numpy", "scikit-learn", "scipy"}
    closed = desk.classifier.close_round([two])
    assert closed.round == len(desk.classifier.rounds_)
    assert desk.classifier.open_policy_ is None


def test_a_classifier_is_saved_while_a_round_is_open(rng):
    desk = certified_desk()
    desk.classifier.open_round()
    again = loads(dumps(desk.classifier))
    X, ids = rng.normal(size=(50, 1)), np.arange(90_000, 90_050)
    both = desk.classifier, again
    decided, other = (each.open_policy_.decide(X, ids=ids) for each in both)
    np.testing.assert_array_equal(decided.accepted, other.accepted)
    for each in both:
        each.close_round([decided])
        each.observe(decided.ids[decided.accepted], np.ones(decided.accepted.sum(), int))
    np.testing.assert_allclose(wealth(again), wealth(desk.classifier), rtol=1e-12)


def tables(n, rng):
    frame = pd.DataFrame(
        {"income": rng.normal(size=n), "job": rng.choice(["baker", "smith", None], n)}
    )
    return frame, rng.choice(["f", "m"], n)


@pytest.mark.parametrize("mode", ["aware", "blind", "audit"])
def test_a_policy_reads_tables_and_groups(rng, mode):
    frame, group = tables(400, rng)
    good = (rng.random(400) < 0.8).astype(int)
    options = {"certify": "per_group"} if mode == "aware" else {}
    classifier = CertifiedClassifier(learner=QUICK, group_mode=mode, random_state=0, **options).fit(
        frame, good, sensitive_features=group, ids=[f"h{i}" for i in range(400)]
    )
    twin = copy.deepcopy(classifier)
    frame, group = tables(200, rng)
    if mode != "aware":
        group = np.where(np.arange(200) % 9 == 0, "x", group)
        group = np.where(np.arange(200) % 7 == 0, "d", group)
    ids = np.array([f"a{i}" for i in range(200)])
    decided = twin.decide(frame, sensitive_features=group, ids=ids, unlike_history=True)
    policy = loads(dumps(classifier.open_round(200)), holds=CertifiedPolicy)
    pieces = np.split(rng.permutation(200), [1, 30])
    parts = [
        policy.decide(frame.iloc[rows], sensitive_features=group[rows], ids=ids[rows])
        for rows in pieces
    ]
    classifier.close_round(parts)
    for rows, part in zip(pieces, parts, strict=True):
        np.testing.assert_array_equal(part.accepted, decided.accepted[rows])
    assert classifier.group_counts_ == twin.group_counts_
    assert repr(classifier.rounds_) == repr(twin.rounds_)
    scored = policy.scored_by(frame, sensitive_features=group if mode == "aware" else None)
    score = scored.likelihood.score(scored.X, scored.group)
    np.testing.assert_allclose(score, decided.score, rtol=1e-9)


def test_so_many_applications_of_a_person_count(rng):
    desk = Desk(per_person=2)
    policy = desk.classifier.open_round(400)
    X = np.repeat(rng.normal(size=(100, 1)), 4, axis=0)
    decided = policy.decide(X, ids=np.arange(10_000, 10_400), persons=np.repeat(np.arange(100), 4))
    closed = desk.classifier.close_round([decided])
    waiting = desk.engine.waiting[0]
    assert closed.n_accepted == waiting.accepted.sum()
    assert waiting.barred.sum() == waiting.barred.size / 2  # the first two of four count


def test_closing_refuses_what_does_not_follow(rng):
    desk = Desk()
    first = desk.decide()
    policy = desk.classifier.open_round()
    X, ids = rng.normal(size=(40, 1)), np.arange(90_000, 90_040)
    part = policy.decide(X, ids=ids)
    flipped = replace(part, accepted=~part.accepted)
    likelier = replace(part, propensity=np.minimum(1.0, part.propensity + 1e-9))
    lower = replace(part, score=part.score - 0.01)
    renamed = replace(part, ids=part.ids + 1)
    known = policy.decide(X[:2], ids=first.ids[:2])
    other = replace(part, round=part.round + 1)
    bare = replace(part, applicants=None)
    wrong = [[flipped], [likelier], [lower], [renamed], [part, known], [other], [bare], [part] * 2]
    before = dumps(desk.classifier)
    for parts in wrong:
        with pytest.raises(InputError):
            desk.classifier.close_round(parts)
        assert first_other_content(before, dumps(desk.classifier), 0.0) is None
    assert desk.classifier.close_round([part]).n_people == 40
    with pytest.raises(InputError):
        desk.classifier.close_round([part])


def test_one_round_is_open_at_a_time(rng):
    desk = Desk()
    policy = desk.classifier.open_round()
    assert desk.classifier.open_policy_ is policy
    with pytest.raises(InputError, match="round 1 is open"):
        desk.classifier.open_round()
    with pytest.raises(InputError, match="round 1 is open"):
        desk.decide()
    with pytest.raises(InputError, match="-1"):
        Desk().classifier.open_round(-1)
    with pytest.raises(InputError, match="incumbent"):
        policy.decide(rng.normal(size=(2, 1)), ids=[7001, 7002], incumbent=[0, 1])
    with pytest.raises(InputError, match="ids"):
        policy.decide(rng.normal(size=(2, 1)), ids=None)
    with pytest.raises(InputError, match="2"):
        policy.decide(rng.normal(size=(2, 2)), ids=[7001, 7002])
    with pytest.raises(InputError, match="inf"):
        policy.decide(np.array([[np.inf]]), ids=[7001])
    with pytest.raises(InputError, match="2020"):
        replace(policy, expires="2020-01-01").decide(rng.normal(size=(2, 1)), ids=[7001, 7002])


def test_a_round_without_applicants_counts(rng):
    desk = Desk()
    for _ in range(2):
        desk.classifier.open_round()
        assert desk.classifier.close_round([]).n_people == 0
    decided = desk.rounds(2)
    assert decided.round == 4
    assert [record.n_people for record in desk.classifier.rounds_] == [0, 0, 300, 300]
    desk.classifier.open_round()
    assert desk.classifier.close_round([]).n_people == 0
    X = rng.normal(size=(10, 1))
    assert np.isfinite(desk.classifier.mean_acceptance(X)).all()
    assert desk.rounds(1).round == 6
    assert not desk.engine.waiting


def test_outcomes_come_while_a_round_is_open(rng):
    """They move the wealth of earlier rounds at once, and leave the open round as it is."""
    late, early = Desk(), Desk()
    for desk in (late, early):
        desk.rounds(3)
        desk.decide()
    X, ids = rng.normal(size=(300, 1)), np.arange(90_000, 90_300)
    late.classifier.open_round(300)
    before = late.wealth
    late.tell(4)
    assert not np.allclose(before, late.wealth)
    closed = late.classifier.close_round([late.classifier.open_policy_.decide(X, ids=ids)])
    early.tell(4)
    whole = early.classifier.decide(X, ids=ids)
    # The open round was chosen before the outcomes, the other after them.
    assert late.classifier.rounds_[-1].n_outcomes < early.classifier.rounds_[-1].n_outcomes
    assert closed.round == whole.round
    assert late.engine.waiting[0].number == closed.round


def test_a_restart_takes_the_bets_of_an_open_round(rng):
    desk = certified_desk()
    number = desk.classifier.open_round().round
    ids, outcome = desk.accepted[0]
    with pytest.warns(LearningWarning, match="begins again"):
        desk.classifier.correct(ids[:1], 1 - outcome[:1])
    assert desk.engine.stage.began == number + 1
    X = rng.normal(size=(300, 1))
    part = desk.classifier.open_policy_.decide(X, ids=np.arange(90_000, 90_300))
    desk.classifier.close_round([part])
    assert desk.engine.waiting[0].bets == []
    desk.classifier.observe(part.ids[part.accepted], np.ones(part.accepted.sum(), int))
    assert not desk.engine.waiting
    assert desk.engine.n_tested == 0
    desk.rounds(1)
    assert desk.classifier.rounds_[-1].tests_began == number + 1
    assert desk.engine.n_tested > 0


def test_tests_begin_again_without_a_void_round():
    for told in (False, True):
        desk = Desk()
        desk.rounds(2)
        desk.decide()
        if told:
            desk.tell(3)
        with pytest.warns(LearningWarning, match="begins again"):
            desk.classifier.void_round(3)
        assert desk.engine.n_tested == 0
        began = desk.engine.stage
        desk.classifier.void_round(3)  # another applicant of it
        assert desk.engine.stage is began
        if not told:
            desk.tell(3)
        assert desk.engine.n_tested == 0
    for wrong in (0, 4):
        with pytest.raises(InputError):
            desk.classifier.void_round(wrong)


def test_an_interrupted_test_counts_no_round_twice(monkeypatch):
    desk, calls = Desk(), []
    desk.rounds(6)
    desk.decide()
    assert len(desk.engine.ladders) > 1
    test = Ladder.test

    def interrupted(ladder, *values, **options):
        calls.append(ladder)
        if len(calls) == 2:
            raise KeyboardInterrupt
        test(ladder, *values, **options)

    monkeypatch.setattr(Ladder, "test", interrupted)
    with pytest.raises(KeyboardInterrupt):
        desk.tell(7)
    desk.tell(7)
    assert len(calls) == 2
    assert (desk.engine.stage.reason, desk.engine.n_tested) == ("correction", 0)


def leaves_out_bad_rounds(rng, *, alone, rounds=60, n=300):
    """Return whether rounds of which too many outcomes are bad can be left out of the evidence.

    With ``alone`` such a round is left out, and nothing else happens.
    """
    town = Town(lender=(0.5, 0.5)).with_fdr(ALPHA + 0.0005)
    classifier = open_program(town, rng, horizon=rounds)
    engine = classifier._engines[0]
    for t in range(1, rounds + 1):
        people = town.draw(n, rng)
        decided = classifier.decide(people.X, incumbent=people.incumbent)
        ids, bad = decided.ids[decided.accepted], people.bad[decided.accepted]
        classifier.observe(ids[:-1], 1 - bad[:-1])  # so that the round waits
        if bad.mean() > ALPHA and alone:
            engine.waiting[-1].bets = []
        elif bad.mean() > ALPHA:
            classifier.void_round(t)
        classifier.observe(ids[-1:], 1 - bad[-1:])
        if breaks_the_bound(classifier, town):
            return True
    return False


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
@pytest.mark.parametrize("alone", [False, True])
def test_outcomes_cannot_choose_which_rounds_count(alone):
    false = sum(leaves_out_bad_rounds(rng, alone=alone) for rng in rngs(94, 12))
    assert too_many(false, 12, DELTA) == alone


# Nulls: applicants come one by one, a round has so many of them, and outcomes come in between.

RUNS = 40
JUST_ABOVE = ALPHA + 0.0005
NULLS = {
    "own": (Town().with_fdr(JUST_ABOVE), {}),
    "beside the lender": (Town(lender=(0.6, 0.4)).with_lenders_fdr(JUST_ABOVE), {"ramp": 0.5}),
}


@dataclass
class Stream:
    """Applicants one by one, rounds of ``n``, and outcomes that arrive while a round is open.

    ``leaves_out`` is the share of the bad applicants that are decided on and not in the parts.
    """

    town: Town
    rng: np.random.Generator
    n: int = 300
    rounds: int = 30
    ramp: float = 1.0
    leaves_out: float = 0.0

    def is_false(self):
        """Return whether a policy that breaks α is ever certified."""
        classifier, before = open_program(self.town, self.rng, horizon=self.rounds), ()
        for t in range(self.rounds):
            before = self.round(classifier, t, self.town.draw(self.n, self.rng), before)
            if breaks_the_bound(classifier, self.town):
                return True
        return False

    def round(self, classifier, t, month, before):
        """Decide on a month and tell of the month before; return what is to be told next."""
        beside, late = self.ramp < 1, list(before)
        policy = classifier.open_round(self.n, incumbent=beside, ramp=self.ramp)
        ids, parts, told = np.arange(10_000 * (t + 1), 10_000 * (t + 1) + self.n), [], []
        for i in range(self.n):
            row = slice(i, i + 1)
            incumbent = month.incumbent[row] if beside else None
            part = policy.decide(month.X[row], ids=ids[row], incumbent=incumbent)
            if not (month.bad[i] and self.rng.random() < self.leaves_out):
                parts.append(part)
                told += [(ids[i], 1 - int(month.bad[i]))] if part.accepted[0] else []
            if late and self.rng.random() < 0.9:
                classifier.observe(*zip(late.pop(self.rng.integers(len(late))), strict=True))
        if late:
            classifier.observe(*zip(*late, strict=True))
        self.rng.shuffle(parts)
        classifier.close_round(parts)
        return told


def false_streams(seed, runs=RUNS, **options):
    return sum(Stream(rng=rng, **options).is_false() for rng in rngs(seed, runs))


@pytest.mark.long
@pytest.mark.parametrize("name", NULLS)
def test_streams_certify_nothing_falsely(name):
    """Exact binomial at δ; false alarm 0.001."""
    town, options = NULLS[name]
    assert not too_many(false_streams(91, town=town, **options), RUNS, DELTA)


@pytest.mark.long
def test_leaving_bad_applicants_out_of_the_parts_is_caught():
    town, _ = NULLS["own"]
    assert too_many(false_streams(92, 12, town=town, leaves_out=0.2), 12, DELTA)


def test_whoever_applies_again_is_drawn_anew(rng):
    """Also who was rejected and is more likely to be accepted now; probabilities are as logged."""
    desk = certified_desk()
    policy, n = desk.classifier.open_round(4000), 4000
    X, ids = rng.normal(size=(n, 1)), np.arange(n) + 10_000
    one = policy.decide(X, ids=ids, persons=ids)
    again = np.flatnonzero(~one.accepted)
    better = X[again] + (1.0 if one.score[X[:, 0].argmax()] > one.score[X[:, 0].argmin()] else -1.0)
    two = policy.decide(better, ids=ids[again] + n, persons=ids[again])
    assert (two.propensity > one.propensity[again]).mean() > 0.5
    spread = np.sqrt((two.propensity * (1 - two.propensity)).sum())
    assert abs(two.accepted.sum() - two.propensity.sum()) < 4 * spread


def applying_again_is_false(rng, *, same_coin, n=600, rounds=40, rung=40):
    """Return whether a rung that breaks α is certified, if bad applicants who are rejected return.

    All apply on the soft edge with a chance of one half; the bad among the rejected apply again
    with a chance of .8, so that just more than α of those whom the rung accepts are bad.
    """
    ladder = make_ladder(starts=((rung, 1.0),))
    q, use = ladder.grid[rung], np.arange(ladder.grid.size) == rung
    ranks = q + ladder.tau * np.log(1 / np.array([0.5, 0.8]))
    share = 0.5 * ALPHA / (0.9 - 0.4 * ALPHA) + 0.001
    for _ in range(rounds):
        coin, bad = rng.random(n), rng.random(n) < share
        back = np.flatnonzero(bad & (coin >= 0.5))
        coins = np.append(coin, coin[back] if same_coin else rng.random(back.size))
        rank = np.repeat(ranks, [n, back.size])
        at = Positions(rank, np.zeros(rank.size))
        p, persons = ladder.policy(at, rung), np.append(np.arange(n), back)
        accepted = coins < p
        ladder.test(
            at,
            p,
            accepted,
            accepted * np.append(bad, bad[back]).astype(float),
            ratio_bounds=ladder.ratio_bounds(rung),
            use=use,
            dependence=Dependence(persons, per_person=2),
        )
    return bool(ladder.certified()[rung])


@pytest.mark.parametrize("same_coin", [False, True])
def test_people_who_apply_again_certify_nothing_falsely(same_coin):
    """Unless their applications share a coin, which is known to be bad the second time."""
    false = sum(applying_again_is_false(rng, same_coin=same_coin) for rng in rngs(93, RUNS))
    assert too_many(false, RUNS, LEVEL) == same_coin


def _decide_alone(content, X, ids):
    policy = loads(content, holds=CertifiedPolicy)
    return [policy.decide(X[i : i + 1], ids=ids[i : i + 1]) for i in range(len(X))]


@pytest.mark.long
def test_eight_processes_decide_as_one(rng):
    desk = certified_desk()
    policy = desk.classifier.open_round(400)
    X, ids = rng.normal(size=(400, 1)), np.arange(90_000, 90_400)
    whole = policy.decide(X, ids=ids)
    pieces = np.array_split(rng.permutation(400), 8)
    with ProcessPoolExecutor(8, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(_decide_alone, dumps(policy), X[rows], ids[rows]) for rows in pieces]
        parts = [part for job in jobs for part in job.result()]
    closed = desk.classifier.close_round(parts)
    assert closed.n_accepted == whole.accepted.sum()
    for rows, job in zip(pieces, jobs, strict=True):
        answers = job.result()
        together = np.concatenate([one.propensity for one in answers])
        np.testing.assert_allclose(together, whole.propensity[rows], rtol=1e-12, atol=1e-12)
        assert [bool(one.accepted[0]) for one in answers] == whole.accepted[rows].tolist()
