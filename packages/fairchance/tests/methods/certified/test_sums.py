"""A waiting round keeps sums over the rejected: evidence equals that of all applicants."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest

from fairchance import Limited, OutcomeNoise, Uniform
from fairchance.methods.certified.engine import Engine
from fairchance.methods.certified.evidence import MIRROR_CAP, RATIO_CAPS
from fairchance.methods.storage import dumps
from methods.certified.controls import with_engine
from methods.certified.known_truth import ALPHA
from methods.certified.lender import Town, open_program, tell

TOWN = Town(bad=0.1, slope=1.5, lender=(0.6, 0.3), takes=(0.9, 0.8))
_LOSS = 0.95  # of the wealth, from one applicant

CASES = {
    "own": ({}, {}),
    "union": ({}, {"lender": True}),
    "ramp and floor": ({"floor": 0.02}, {"lender": True, "ramp": 0.6}),
    "limits": ({"strategy": Limited(Uniform(), max_risk=0.25), "floor": 0.02}, {}),
    "persons": ({"per_person": 2}, {"persons": True}),
    "persons, union, shock": (
        {"per_person": 2, "shock": 0.01},
        {"lender": True, "persons": True, "ramp": 0.8},
    ),
    "shock and noise": (
        {"shock": 0.01, "noise": OutcomeNoise(bad_as_good=0.02, good_as_bad=0.05)},
        {"barred": True},
    ),
}


class Everybody(Engine):
    """Keeps all applicants of each round, with the bets, outside the rounds that wait."""

    def prepare(self, opened, X, group, at, decided, bits, barred=None, persons=None):
        rounds = self.__dict__.setdefault("everybody", {})
        rounds[decided.round] = (opened, X, group, at.incumbent, decided, barred, persons)
        return super().prepare(opened, X, group, at, decided, bits, barred, persons)

    def _test(self, waiting):
        tested = self.__dict__.setdefault("tested", [])
        tested.append((waiting.number, self._outcomes(waiting).copy()))
        super()._test(waiting)


def product(z, share, persons, most):
    """Return log Π(1 + λΣZ) over persons, with λ divided by M; each alone without persons."""
    if persons is None:
        return sum(math.log1p(share * one) for one in z)
    sums = {}
    for who, one in zip(persons.tolist(), z, strict=True):
        sums[who] = sums.get(who, 0.0) + one
    return sum(math.log1p(share / most * one) for one in sums.values())


def of_all(engine, number, outcome):
    """Return who was accepted and took the loan, and the outcome of each, −2 if there is none."""
    _, _, _, _, decided, _, _ = engine.everybody[number]
    counted, known = decided.accepted.copy(), np.full(len(decided), -2)
    counted[decided.accepted], known[decided.accepted] = outcome != -3, outcome
    return decided.propensity, counted, known


def expected_growth(engine, ladder, number, outcome, k, i, rung):
    """Return the growth of all bets on a rung in a round, by the formula for each applicant."""
    opened, X, group, incumbent, _, barred, persons = engine.everybody[number]
    p, counted, known = of_all(engine, number, outcome)
    (bet,) = (bet for bet in opened.bets if bet.ladder is ladder)
    wealth, rules = ladder.tests[k].wealth, engine.rules
    growth = np.zeros(len(wealth.bets))
    if not bet.use[k, i, rung]:
        return growth
    pi = ladder.policy(ladder.locate(X, group).beside(incumbent, barred), rung)
    bad = rules.noise.badness(known != 1)
    z = []
    for j in range(p.size):
        w = min(pi[j] / p[j], RATIO_CAPS[i]) if p[j] > 0 else RATIO_CAPS[i]
        rem = pi[j] - w * p[j]
        gain = w * (wealth.alpha - bad[j]) if counted[j] else 0.0
        z.append(gain - (1 - wealth.alpha) * rem)
    worst = wealth.most_bad - wealth.alpha
    bound = opened.policy.ratio_bounds(ladder)[i, rung]
    mass = p.size * np.broadcast_to(ladder.mass, ladder.grid.shape)[rung]
    for b, size in enumerate(wealth.bets):
        share = min(size / worst, _LOSS / (worst * bound))
        alone = share if persons is None else share / rules.per_person
        growth[b] = product(z, share, persons, rules.per_person)
        growth[b] -= 0.5 * (alone * mass * ladder.shock) ** 2
    return growth


def played(kind, rng, rounds=5, n=150):
    options, months = CASES[kind]
    classifier = open_program(TOWN, rng, method=with_engine(Everybody), horizon=5, **options)
    for _ in range(rounds):
        month, given = TOWN.draw(n, rng), {"ramp": months.get("ramp", 1.0)}
        if "lender" in months:
            given["incumbent"] = month.incumbent
        if "persons" in months:
            given["persons"] = rng.integers(0, n // 2, n)
        if "barred" in months:
            given["barred"] = rng.random(n) < 0.1
        decided = classifier.decide(month.X, unlike_history=True, **given)
        tell(classifier, month, decided)
    return classifier


@pytest.fixture(scope="module", params=CASES)
def run(request):
    return played(request.param, np.random.default_rng(11))


def test_wealth_equals_that_of_all_applicants(run):
    engine = run._engines[0]
    assert len(engine.tested) == 5
    for ladder in engine.ladders:
        rungs = np.unique(np.linspace(0, ladder.grid.size - 1, 7).astype(int))
        for k, i, rung in itertools.product(range(len(ladder.tests)), range(2), rungs.tolist()):
            expected = sum(
                expected_growth(engine, ladder, number, outcome, k, i, rung)
                for number, outcome in engine.tested
                if number >= ladder.frozen
            )
            found = ladder.tests[k].wealth.log[i, :, rung]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def expected_mirror(engine, rounds, bound, pi_of, is_bad, ratio_of, mass_of):
    """Return Σ over rounds and applicants of log(1 + λZ') for each bet."""
    total, rules = np.zeros(4), engine.rules
    for number, outcome in rounds:
        persons = engine.everybody[number][6]
        p, counted, known = of_all(engine, number, outcome)
        pi, ratio = pi_of(number), ratio_of(number)
        w = np.minimum(np.divide(pi, p, out=np.full(p.size, np.inf), where=p > 0), MIRROR_CAP)
        rem = pi - w * p
        z = counted * w * (is_bad(known) - bound) - bound * rem
        for b, size in enumerate((0.1, 0.3, 0.8, 2.0)):
            share = min(size, _LOSS / (bound * ratio))
            alone = share if persons is None else share / rules.per_person
            total[b] += product(z.tolist(), share, persons, rules.per_person)
            total[b] -= 0.5 * (alone * mass_of(number) * rules.shock) ** 2
    return total


def test_the_mirror_test_equals_that_of_all_applicants(run):
    engine = run._engines[0]
    mirror = engine.stage.mirror
    if mirror is None:
        assert all(one[3] is None for one in engine.everybody.values())
        return
    d = {number: one[3].astype(float) for number, one in engine.everybody.items()}
    expected = expected_mirror(
        engine,
        engine.tested,
        engine.rules.noise.recorded_fdr(ALPHA),
        d.__getitem__,
        lambda known: known == 0,
        lambda number: engine.everybody[number][0].policy.ratio_of_incumbent(),
        lambda number: d[number].sum() + 4 * d[number].std() * math.sqrt(d[number].size),
    )
    np.testing.assert_allclose(mirror._log[0, :, 0], expected, rtol=1e-9, atol=1e-9)


def test_the_outlook_equals_that_of_all_applicants(run):
    engine = run._engines[0]
    looked = 0
    for ladder in engine.ladders:
        outlook = ladder.outlook
        if outlook is None:
            continue
        for j in np.unique([0, outlook.n_near - 1]):
            rung = int(outlook.rungs[j])

            def bounds(number, ladder=ladder, rung=rung):
                return engine.everybody[number][0].policy.ratio_bounds(ladder)[1, rung]

            def is_looked_at(number, ladder=ladder, bounds=bounds):
                opened = engine.everybody[number][0]
                bets = [bet for bet in opened.bets if bet.ladder is ladder]
                policy = opened.policy
                located = bets and (bets[0].use.any() or ladder.ranking is policy.ladder.ranking)
                return located and policy.is_looked_at and bounds(number) <= MIRROR_CAP

            def pi_of(number, ladder=ladder, rung=rung):
                _, X, group, incumbent, _, barred, _ = engine.everybody[number]
                return ladder.policy(ladder.locate(X, group).beside(incumbent, barred), rung)

            def mass(number, ladder=ladder, rung=rung):
                share = np.broadcast_to(ladder.mass, ladder.grid.shape)[rung]
                return len(engine.everybody[number][4]) * share

            rounds = [one for one in engine.tested if is_looked_at(one[0])]
            looked += len(rounds)
            for test, label in ((outlook._above, 0), (outlook._below, 1)):
                if j >= test.best.shape[1]:
                    continue
                expected = expected_mirror(
                    engine,
                    rounds,
                    float(test.bounds[2]),
                    pi_of,
                    lambda known, label=label: known == label,
                    bounds,
                    mass,
                )
                np.testing.assert_allclose(test._log[2, :, j], expected, rtol=1e-9, atol=1e-9)
    assert looked or any(one[0].policy.ladder.union for one in engine.everybody.values())


def test_a_waiting_round_grows_with_the_accepted_only(rng):
    """The state keeps no features of rejected applicants, except in samples of a fixed size."""
    classifier = open_program(TOWN, rng, learner=None)
    month = TOWN.draw(100, rng)
    tell(classifier, month, classifier.decide(month.X))
    sizes = []
    for n in (1000, 8000):
        twin, rng_of_month = copy.deepcopy(classifier), np.random.default_rng(1)
        decided = twin.decide(TOWN.draw(n, rng_of_month).X)
        waiting = twin._engines[0].waiting[0]
        assert waiting.p.size == decided.accepted.sum() == waiting.rows.size
        assert waiting.n_people == n
        sizes.append(len(dumps(waiting)))
    assert sizes[1] < 2 * sizes[0]
