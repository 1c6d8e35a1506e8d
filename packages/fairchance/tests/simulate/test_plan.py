"""Plans: compared with the method's own records, and monotone where they must be."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from typer.testing import CliRunner

from fairchance.cli.app import app
from fairchance.core.utility import Revenue
from fairchance.errors import InputError
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.simulate import plan as planning
from fairchance.simulate.feedback import Between, Feedback, Fixed
from fairchance.simulate.plan import (
    Plan,
    PlannedStart,
    plan,
    recommended,
    simulate_plan,
    simulate_starts,
)
from fairchance.simulate.populations import Binormal
from fairchance.simulate.run import run
from fairchance.simulate.streams import Drawn
from fairchance.simulate.worlds import World

EASY = Plan(Drawn(Binormal(good=0.85, auc=0.9), 400, 12), repetitions=3)


@pytest.fixture(scope="module")
def easy_plan():
    return plan(EASY, jobs=1)


@pytest.fixture
def simulated_once(monkeypatch):
    """Simulate each run of this process once, however often plans ask for it."""
    monkeypatch.setattr(planning, "simulate_plan", cache(simulate_plan))


def test_easier_populations_are_certified_earlier_and_cheaper(easy_plan):
    (easy,) = easy_plan
    (hard,) = plan(replace(EASY, stream=Drawn(Binormal(good=0.7, auc=0.75), 400, 12)), jobs=1)
    assert easy.share_certified == 1
    assert easy.rounds[1] < hard.rounds[1] or hard.share_certified < 1
    assert easy.lost_on_bad[1] < hard.lost_on_bad[1] or hard.share_certified < 1
    for figures in (easy.rounds, easy.accepted, easy.explored, easy.lost_on_bad):
        assert figures[0] <= figures[1] <= figures[2]
    assert easy.explored[1] <= easy.accepted[1]
    assert easy.lost_on_bad[1] % 500 == 0 or easy.lost_on_bad[1] % 250 == 0


def test_certificates_of_groups_take_longer():
    shares = (("A", 0.7), ("B", 0.3))
    stream = Drawn(Binormal(good=0.85, auc=0.9, shares=shares), 400, 12)
    certificates = {until.whom: until for until in plan(Plan(stream, repetitions=2), jobs=1)}
    assert list(certificates) == ["everybody", "A", "B"]
    assert certificates["B"].rounds[1] >= certificates["everybody"].rounds[1] or np.isnan(
        certificates["B"].rounds[1]
    )


def test_the_curve_is_the_mean_of_the_last_rounds(easy_plan):
    """A plan to the end has the figures of one that ends with the certificate, and a curve."""
    curves = []
    for number in range(3):
        taken, curve = simulate_plan(EASY, "overall", number, whole=True)
        assert np.array_equal(taken, simulate_plan(EASY, "overall", number)[0])
        curves.append(curve)
    (estimate,) = easy_plan
    for k, point in enumerate(estimate.curve):
        last = [curve[k] for curve in curves]
        assert {one.bound for one in last} == {point.bound}
        assert point.share_certified == pytest.approx(np.mean([one.certified for one in last]))
        for name in ("share", "earned", "estimated_fdr"):
            values = [getattr(one, name) for one in last]
            assert getattr(point, name) == pytest.approx(np.mean(values))
    assert [point.bound for point in estimate.curve] == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.25])
    earned = [point.earned for point in estimate.curve]
    assert earned[0] < earned[2] <= earned[-1] + 1


def test_plans_do_not_depend_on_the_number_of_cores(easy_plan):
    assert plan(EASY, jobs=2) == easy_plan


def test_progress_and_invalid_options():
    seen = []
    short = replace(EASY, stream=Drawn(Binormal(good=0.85, auc=0.9), 300, 3), repetitions=2)
    plan(short, jobs=1, progress=lambda *done: seen.append(done))
    assert seen == [(1, 2), (2, 2)]
    with pytest.raises(InputError, match=r"repetitions.* 1\b"):
        plan(replace(EASY, repetitions=1))


def test_the_command(tmp_path):
    easy = ["plan", "--good", "0.85", "--auc", "0.9", "--people", "300", "--rounds", "8"]
    few = ["--repetitions", "2", "--jobs", "1", "--json"]
    done = CliRunner().invoke(app, [*easy, *few])
    assert done.exit_code == 0, done.output
    (everybody,) = json.loads(done.stdout)["certificate"]
    assert everybody["whom"] == "everybody"
    for wrong, value in (
        (["--groups", "A:1"], "'A:1'"),
        (["--auc", "0.3"], "0.3"),
        (["--history", str(tmp_path / "x.csv")], "--outcome"),
    ):
        refused = CliRunner().invoke(app, ["plan", *wrong, *few])
        assert refused.exit_code == 2
        assert value in json.loads(refused.stdout)["error"]["message"]


# Late outcomes

LATE = Plan(Drawn(Binormal(good=0.75, auc=0.8), 300, 16), repetitions=3)


def without_delay(wanted, number):
    """Return rounds, accepted, explored and losses until the certificate, without a delay."""
    world = World(wanted.stream, wanted.past, seed=number)
    past = world.history()
    method = CertifiedClassifier(
        0.15, 0.1, Revenue(gain=200, loss=500), horizon=world.n_rounds, random_state=number
    ).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    taken = np.zeros(4)
    for result in run(method, world):
        if method.rounds_[-1].status == "certified":
            return taken
        accepted = result.decided.accepted
        bad = (result.applicants.outcome[accepted] == 0).sum()
        taken += [1, accepted.sum(), (accepted & ~result.decided.exploit).sum(), 500 * bad]
    raise AssertionError


def test_delay_of_zero():
    for number in range(2):
        expected = without_delay(LATE, number)
        for delay in (Fixed(), Between(0, 0)):
            ((taken,), _) = simulate_plan(replace(LATE, delay=delay), "overall", number)
            assert taken.tobytes() == expected.tobytes()
    few = replace(LATE, repetitions=2)
    assert plan(few, jobs=1) == plan(replace(few, delay=Between(0, 0)), jobs=1)


def first_certificates(delays, numbers=range(3)):
    """Return the rounds before the first certificate, a row per delay and a column per seed."""
    return np.array(
        [
            [simulate_plan(replace(LATE, delay=delay), "overall", n)[0][0, 0] for n in numbers]
            for delay in delays
        ]
    )


def is_increasing(rounds):
    """Return whether longer delays never give earlier certificates, and the longest later ones."""
    return bool((np.diff(rounds, axis=0) >= 0).all() and (rounds[-1] > rounds[0]).all())


def test_a_longer_delay_never_gives_an_earlier_certificate(monkeypatch):
    """For easy populations; in harder ones, pilots differ and chance decides, too."""
    delays = (Fixed(0), Between(0, 2), Fixed(2), Between(1, 5), Fixed(5))
    rounds = first_certificates(delays)
    assert is_increasing(rounds)
    # No certificate is possible before the outcomes of the first round have arrived.
    assert (rounds.min(axis=1) >= [1, 3, 3, 6, 6]).all()
    monkeypatch.setattr(planning, "Feedback", lambda **_: Feedback())  # the control ignores delays
    assert not is_increasing(first_certificates((delays[0], delays[-1])))


def rounds_until_observed(monkeypatch, wanted):
    """Return the delays of observed outcomes in a simulated run."""
    seen = []

    class Watched(CertifiedClassifier):
        def decide(self, X, **options):
            decided = super().decide(X, **options)
            self.when = getattr(self, "when", {}) | dict.fromkeys(
                decided.ids.tolist(), decided.round
            )
            self.now = decided.round
            return decided

        def observe(self, ids, outcomes):
            seen.extend(self.now - self.when[name] for name in np.asarray(ids).tolist())
            return super().observe(ids, outcomes)

    monkeypatch.setattr(planning, "CertifiedClassifier", Watched)
    simulate_plan(wanted, "overall", 0)
    return set(seen)


def test_outcomes_are_delayed(monkeypatch):
    assert rounds_until_observed(monkeypatch, LATE) == {0}
    assert rounds_until_observed(monkeypatch, replace(LATE, delay=Between(2, 4))) == {2, 3, 4}
    assert rounds_until_observed(monkeypatch, replace(LATE, delay=Fixed(3))) == {3}


def test_maturity_and_patience():
    late = replace(LATE, delay=Between(1, 4))
    rounds = {
        (maturity, patience): simulate_plan(
            replace(late, maturity=maturity, patience=patience), "overall", 0
        )[0][0, 0]
        for maturity, patience in ((0, None), (0, 5), (0, 2), (8, None))
    }
    waits = rounds[0, None]
    assert rounds[0, 5] == waits  # all outcomes have arrived by then
    assert not rounds[0, 2] <= waits  # late outcomes count as bad
    assert rounds[8, None] >= max(waits, 9)
    for name, value in (("maturity", -1), ("patience", 0)):
        with pytest.raises(InputError, match=rf"{name}.* {value}\b"):
            plan(replace(LATE, **{name: value}))


@pytest.mark.usefixtures("simulated_once")  # words and JSON are of the same runs
def test_command_describes_the_delay(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    few = ["plan", "--good", "0.85", "--auc", "0.9", "--people", "300", "--rounds", "9"]
    few += ["--repetitions", "2", "--jobs", "1"]
    outputs = {}
    for delay in ("", "0", "2", "1-4"):
        command = [*few, *(["--delay", delay] if delay else [])]
        outputs[delay] = CliRunner().invoke(app, command).stdout
        data = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
        least, _, most = (delay or "0").partition("-")
        assert data["delay"] == {"least": int(least), "most": int(most or least)}
        longest = data["delay"]["most"]
        assert (data["maturity"], data["patience"]) == (None, longest + 1 if longest else None)
    assert outputs[""] == outputs["0"]
    assert len({*outputs.values()}) == 3


@pytest.mark.parametrize("delay", ["soon", "", "1.5", "-2", "9-3", "40-50"])
def test_invalid_delays(delay):
    done = CliRunner().invoke(app, ["plan", f"--delay={delay}", "--json"])
    assert done.exit_code == 2
    error = json.loads(done.stdout)["error"]
    assert error["option"] == "--delay"
    assert repr(delay) in error["message"]


def test_ways_of_starting_are_sums_over_the_first_two_years(monkeypatch):
    """Today's policy is a cut of the only score, and a ramp leaves most to it for a year."""
    stream = Drawn(Binormal(good=0.85, auc=0.8), 150, 30)
    wanted, seen = Plan(stream, repetitions=2), {}

    def watched(method, world, given):
        key = method.evidence, given(1, next(world.batches()).applicants.people).get("ramp")
        for result in run(method, world, given):
            seen.setdefault(key, []).append(result)
            yield result

    monkeypatch.setattr(planning, "run", watched)
    starts = simulate_starts(wanted, 600, 0.6, jobs=1)
    keys = [("rounds", None), ("history", None)]
    keys += [("rounds", 1.0), ("history", 1.0), ("rounds", 0.05)]
    for start, key in zip(starts, keys, strict=True):
        results, cut = seen[key], None
        assert len(results) == 2 * start.n_rounds == 48
        worth = [np.where(one.applicants.outcome == 1, 200.0, -500.0) for one in results]
        ours = [w[one.decided.accepted].sum() for w, one in zip(worth, results, strict=True)]
        by_year = np.reshape(ours, (2, 2, 12)).sum(axis=2).mean(axis=0)
        assert start.earned == pytest.approx(by_year.tolist())
        d = [one.decided.incumbent for one in results]
        if key[1] is not None:
            theirs = [w[own].sum() for w, own in zip(worth, d, strict=True)]
            assert sum(start.today) == pytest.approx(sum(theirs) / 2)
            scores = np.concatenate([one.applicants.people.X[:, 0] for one in results])
            cut = scores[np.concatenate(d)].min()
            assert ((scores >= cut) == np.concatenate(d)).all()
            assert np.mean(np.concatenate(d)) == pytest.approx(0.6, abs=0.03)
            runs = np.reshape(np.subtract(ours, theirs), (2, 24)).sum(axis=1)
            assert (start.least, start.most) == (runs.min(), runs.max())
        assert start.today == starts[0].today
    first_year = [one for one in seen["rounds", 0.05] if one.decided.round <= 12]
    assert np.mean([one.decided.accepted != one.decided.incumbent for one in first_year]) < 0.02
    assert recommended(starts) == [max(starts, key=lambda start: start.added)]


@pytest.mark.parametrize(
    ("alone", "beside", "best"),
    [
        ((900.0, -1.0), (10.0, -5.0), "incumbent"),  # alone must lose in neither case
        ((900.0, 1.0), (10.0, -5.0), "pilot"),
        ((900.0, 1.0), (10.0, 5.0), "incumbent"),
    ],
)
def test_the_start_whose_worse_case_is_better_is_recommended(alone, beside, best):
    starts = [
        PlannedStart(way, 24, 1.0, 1.0, (more,), (0.0,), more, more, rejected)
        for way, both in (("pilot", alone), ("incumbent", beside))
        for rejected, more in zip(("alike", "bad"), both, strict=True)
    ]
    found = recommended(starts)
    assert [(one.way, one.rejected) for one in found] == [(best, "alike"), (best, "bad")]


def test_a_history_without_rejections_is_no_way_of_starting():
    stream = Drawn(Binormal(good=0.85, auc=0.8), 60, 2)
    starts = simulate_starts(Plan(stream, repetitions=2), 60, 1.0, jobs=1)
    assert [start.way for start in starts] == ["pilot", "incumbent", "ramp"]
    assert [len(start.earned) for start in starts] == [1, 1, 1]
