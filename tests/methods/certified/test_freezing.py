"""How soft a frozen ladder's edge is, and where its walks start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from methods.certified.known_truth import ALPHA, DELTA, UTILITY, Flat, play, start
from methods.certified.test_ladders import ladder
from secondlook.core.noise import OutcomeNoise
from secondlook.core.strategies import Uniform
from secondlook.methods.certified.engine import edge_softness, walk_starts
from secondlook.methods.certified.ladder import LadderRows
from secondlook.methods.certified.pilot import Pilot, RungEstimates
from secondlook.methods.certified.rules import Rules
from secondlook.people.likelihoods import ConstantLikelihood
from secondlook.people.store import PeopleStore

RULES = Rules(ALPHA, DELTA, UTILITY, 20, False, 0.0, Uniform(), OutcomeNoise())


def test_where_all_look_alike_a_rung_accepts_everybody_with_the_pilots_share():
    ranking = replace(ladder().ranking, likelihood=ConstantLikelihood(0.5))
    for share in (0.02, 0.1, 0.7):
        tau = edge_softness(ranking, 0, RULES, Pilot(ALPHA, share), share, 500)
        assert np.exp(-(1 - share) / tau) == pytest.approx(share)


def test_an_edge_is_a_part_of_what_may_be_accepted_and_some_people_at_least():
    ranking = ladder().ranking
    for share in (0.005, 0.05, 0.5):
        pilot = Pilot(ALPHA, share)
        accepted = min(max(ranking.knee(1.25 * ALPHA), share), 4 * share)
        expected = RULES.softness(0) * accepted
        assert edge_softness(ranking, 0, RULES, pilot, share, 10**6) == pytest.approx(expected)
        small = edge_softness(ranking, 0, RULES, pilot, share, 100)
        assert small == pytest.approx(max(expected, 0.05))
    # Later ladders: around what was deployed so far.
    for widest in (0.001, 0.2):
        later = RULES.softness(1) * min(max(ranking.knee(ALPHA), 0.5 * widest), 6 * widest)
        found = edge_softness(ranking, 1, RULES, pilot, widest, 10**6)
        assert found == pytest.approx(later)


def estimates(ranks, outcome, p):
    """Return our own people at these ranks, all of whom are in the tests."""
    n = len(ranks)
    store = PeopleStore(columns={"p": p, "p_sum": p})
    everybody = np.ones(n, np.bool_)
    store.record(np.arange(n, dtype=np.uint64), everybody, 1, outcome=outcome)
    return RungEstimates(store.parts[0], np.arange(n), 1, n, 1.0, OutcomeNoise())


def test_a_first_ladder_starts_where_the_pilot_stands():
    one = ladder()
    nobody = LadderRows(one, one.locate(np.empty((0, 1)), np.empty(0, np.intp)))
    starts = walk_starts(nobody, Pilot(ALPHA, 0.1), None)
    (start, share), (half, rest) = starts
    assert start == np.argmin(abs(one.grid - 0.1))
    assert half == np.argmin(abs(one.grid - one.grid[start] / 2))
    assert share + rest == pytest.approx(1)


def test_walks_start_apart_and_share_the_whole_level():
    """The second starts half as far out, so that at the innermost rung there is only one."""
    one = ladder()
    nobody = LadderRows(one, one.locate(np.empty((0, 1)), np.empty(0, np.intp)))
    for first, share in enumerate(one.grid):
        half = int(np.argmin(abs(one.grid - share / 2)))
        walks = walk_starts(nobody, Pilot(ALPHA, float(share)), None)
        assert [rung for rung, _ in walks] == ([first, half] if first else [0])
        assert sum(part for _, part in walks) == pytest.approx(1)
        one.starts = walks
        levels = dict(walks)
        assert one.threshold(first) == pytest.approx(-np.log(one.level * levels[first]))
    assert walk_starts(nobody, Pilot(ALPHA, one.grid[0]), None) == ((0, 1.0),)


@pytest.mark.parametrize("edge", [1.0, 0.3, 0.085, 0.0])
def test_a_later_ladder_starts_where_evidence_grew_fastest(edge):
    """People are good up to a rank and bad beyond it; the pilot stands at 0.1."""
    one = ladder(tau=0.002)
    X = np.random.default_rng(0).normal(size=(400, 1))
    at = one.locate(X, np.zeros(400, np.intp))
    outcome = (at.rank <= edge).astype(np.int8)
    z = one.policies(at) / 0.9 * (ALPHA - (outcome == 0))[:, None]
    total, squares = z.sum(axis=0), (z**2).sum(axis=0)
    lowest, pilot = (int(np.argmin(abs(one.grid - q))) for q in (0.07, 0.1))
    growth = [
        total[j] ** 2 / squares[j] if total[j] > 0 and j >= lowest else 0.0
        for j in range(one.grid.size)
    ]
    known = estimates(at.rank, outcome, 0.9)
    reach, pilot_now = LadderRows(one, at), Pilot(ALPHA, 0.1)
    start = walk_starts(reach, pilot_now, known)[0][0]
    if edge == 0:
        assert max(growth) == 0
        assert start == np.argmin(abs(one.grid - 0.05))
    elif edge == 1:  # the more the better, but a ladder starts no further out than a pilot goes
        assert one.grid[np.argmax(growth)] > 0.9
        assert start == np.argmin(abs(one.grid - 0.7))
    else:
        assert start == int(np.argmax(growth))
        assert start > pilot if edge > 0.1 else lowest <= start < pilot


@pytest.mark.parametrize("seed", [1, 10])
def test_no_pilot_accepts_nearly_everybody(seed):
    """Everybody is alike and evidence grows fastest where all are accepted."""
    rng, alike = np.random.default_rng(seed), Flat(fdr=0.1)
    policies = play(start(alike, rng, horizon=20), alike, rng, n=300, rounds=4, truth=False)
    shares = [one.share for one in policies if not one.certified]
    assert 0.5 < max(shares) <= 0.7
