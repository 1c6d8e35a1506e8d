"""Certificates in results: records, summaries, sentences and charts."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from charts import rows_of
from experiments.known_results import make_results
from fairchance.errors import InputError
from fairchance.simulate.populations import Lender
from fairchance.simulate.run import run
from fairchance_lab import plot
from fairchance_lab.experiments.certificates import (
    certified_methods,
    records_of,
    summarise_certificates,
)
from fairchance_lab.experiments.methods import Setup, build
from fairchance_lab.experiments.runner import Run, run_experiment
from fairchance_lab.experiments.spec import Experiment, Goal
from fairchance_lab.experiments.world_spec import WorldSpec

SPEC = WorldSpec("lender", n_batch=300, n_rounds=12, past=({"rule": "policy"},))
METHODS = ("certified", "certified-per-group", "plug-in", "plain")


@pytest.fixture(scope="module")
def results():
    goal = Goal(alpha=0.25, loss=200.0)
    experiment = Experiment("x", SPEC, METHODS, goal=goal, repetitions=2)
    return run_experiment(experiment, Lender(), Run(jobs=1))


def test_rounds_of_the_first_repetition_are_kept(results):
    """Compare with the rounds of the same methods, run by hand with the same seeds."""
    assert {record["method"] for record in results.certificates} == set(METHODS[:2])
    assert certified_methods(results) == list(METHODS[:2])
    seeds = np.random.SeedSequence([0, 0]).generate_state(2)
    world = SPEC.build(Lender(), int(seeds[0]))
    goal = Goal(alpha=0.25, loss=200.0)
    for name in METHODS[:2]:
        method = build(name, world, Setup(world.history(), goal, True, int(seeds[1]), 12))
        for _ in run(method, world):
            pass
        kept = [r for r in results.certificates if r["method"] == name]
        assert len(kept) == len(method.rounds_) == 12 * (1 if name == "certified" else 2)
        assert {record["setting"] for record in kept} == {"α = 0.25"}
        again = [r for records in records_of(results, name, 0).values() for r in records]
        again.sort(key=lambda record: (record.round, record.group or ""))
        expected = sorted(method.rounds_, key=lambda record: (record.round, record.group or ""))
        assert repr(again) == repr(expected).replace("=inf", "=nan")


def test_records_are_valid_json(results):
    text = json.dumps(results.certificates, allow_nan=False)
    assert json.loads(text) == list(results.certificates)
    assert any(r["certified_to"] is None for r in results.certificates)
    assert any(r["certified_to"] is not None for r in results.certificates)


def with_certified(rng, rounds):
    """Return results of a method that is certified in given repetitions and rounds."""
    results = make_results(rng, ("certified",), size=rounds.shape)
    people = np.ones(results.shape, int)
    certified = people * rounds[None, None, :, :, None]
    columns = results.columns | {"n_people": people.ravel(), "n_certified": certified.ravel()}
    return replace(results, columns=columns)


def test_summary_of_certificates(rng):
    rounds = np.zeros((4, 10), int)
    rounds[0, 3:] = 1
    rounds[1, 6:9] = 1
    rounds[2, 9:] = 1
    runs = summarise_certificates(with_certified(rng, rounds), "certified", 0)
    assert (runs.first_median, runs.first_earliest, runs.first_latest) == (7, 4, 10)
    assert runs.rounds_share == pytest.approx((7 + 3 + 1) / 40)
    assert (runs.never_share, runs.runs) == (0.25, 4)
    never = summarise_certificates(with_certified(rng, 0 * rounds), "certified", 0)
    assert math.isnan(never.first_median)
    assert never.never_share == 1


def test_chart_of_certificates(results):
    chart = plot.certificate(results)
    drawn = rows_of(chart, "certified_to")
    records = records_of(results, "certified", 0)[None]
    for field in ("round", "share", "certified_from", "certified_to"):
        wanted = np.array([getattr(record, field) for record in records])
        shown = np.array([row[field] for row in drawn], float)
        assert shown == pytest.approx(wanted, rel=1e-4, nan_ok=True)
    assert [row["name"] == "certified" for row in drawn] == [
        record.status == "certified" for record in records
    ]
    (evidence,) = rows_of(chart, "value")
    assert evidence["value"] == pytest.approx(
        [max(0, r.next_log_wealth / r.next_threshold) for r in records], rel=1e-3
    )


def test_groups_with_their_own_certificate_have_two_panels_each(results):
    spec = plot.certificate(results, method="certified-per-group").to_dict()
    assert len(spec["vconcat"]) == 4
    assert [panel["title"]["text"][-1] for panel in spec["vconcat"]] == ["A", "A", "B", "B"]
    with pytest.raises(InputError, match="'plain'"):
        plot.certificate(results, method="plain")
