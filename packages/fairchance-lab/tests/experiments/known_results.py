"""Results with known counts."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from fairchance.core.decisions import CertifiedRound
from fairchance_lab.experiments.results import COUNTS, KEYS, SHARES, Failure, Results

GOAL = {"alpha": 0.15, "gain": 200.0, "loss": 500.0}


METHODS_HERE = ("plain", "certified", "ceiling")


def make_about(methods, alphas=(0.15,), **experiment):
    settings = {
        "name": "a test",
        "world": {"data": "german", "past": [{"rule": "cutoff", "feature": "age"}]},
        "goal": GOAL,
        "switches": [],
        "classifier": {},
        "published": None,
        "seed": 0,
        "methods": list(methods),
        "variants": {},
        "vary": {"alpha": list(alphas)} if len(alphas) > 1 else {},
    }
    return {
        "experiment": settings | experiment,
        "settings": [{"label": f"α = {a:g}", "alpha": a, "options": {}} for a in alphas],
        "main": int(np.argmin(np.abs(np.array(alphas) - GOAL["alpha"]))),
        "once": [],
        "labels": {name: name.capitalize() for name in methods},
        "version": "0.0",
        "data": {"name": "german", "source": "A source.", "fingerprint": "f", "rows": 1000},
    }


def from_counts(counts, methods, groups, alphas=(0.15,), **experiment):
    """Return results from arrays with axes (setting, method, repetition, round, group)."""
    a, m, r, t, g = (axis.ravel() for axis in np.indices(counts["n_people"].shape))
    keys = (
        np.array([f"α = {alpha:g}" for alpha in alphas], object)[a],
        np.asarray(methods, object)[m],
        r,
        t + 1,
        np.asarray(list(groups), object)[g],
    )
    columns = dict(zip(KEYS, keys, strict=True))
    columns |= {
        name: np.asarray(counts.get(name, np.zeros_like(counts["n_people"]))).ravel()
        for name in COUNTS
    }
    return Results(columns, make_about(methods, alphas, **experiment))


def make_results(
    rng, methods=("plain", "no-exploration"), groups="ab", alphas=(0.15,), size=(5, 8), n=30, **exp
):
    """Return random counts: groups may be empty, rounds may accept no one."""
    shape = (len(alphas), len(methods), *size, len(groups))
    people = rng.integers(0, n, shape)
    good = rng.binomial(people, 0.6)
    accepted_good = rng.binomial(good, 0.3) * rng.integers(0, 2, shape)
    accepted = accepted_good + rng.binomial(people - good, 0.1)
    explored_good = rng.binomial(accepted_good, 0.2)
    explored = explored_good + rng.binomial(accepted - accepted_good, 0.5)
    counts = {
        "n_people": people,
        "n_good": good,
        "n_accepted": accepted,
        "n_accepted_good": accepted_good,
        "n_exploit_region": rng.binomial(people, 0.5),
        "n_explored": explored,
        "n_explored_good": explored_good,
    }
    later = {"n_people": "n_next", "n_good": "n_next_good"} | {
        f"n_{name}": f"n_next_{name}" for name in ("accepted", "accepted_good")
    }
    for now, after in later.items():
        counts[after] = np.roll(counts[now], -1, axis=3)
        counts[after][:, :, :, -1] = 0
    return from_counts(counts, methods, list(groups), alphas, **exp)


def crafted(accepted, fdr=0.1, alphas=(0.15,), noise=2, size=(12, 8), **experiment):
    """Return results in which methods accept about as many people, with about this FDR."""
    rng = np.random.default_rng(1)
    methods = tuple(accepted)
    shape = (len(alphas), len(methods), *size, 2)
    rates = fdr if isinstance(fdr, dict) else dict.fromkeys(methods, fdr)
    mean = np.array([accepted[name] for name in methods])[:, None, None, None]
    share = np.array([rates[name] for name in methods])[:, None, None, None]
    n = np.maximum(np.broadcast_to(mean, shape) + rng.integers(-noise, noise + 1, shape), 0)
    bad = np.clip(np.rint(n * share).astype(int) + rng.integers(-1, 2, shape), 0, n)
    people = np.full(shape, 1000)
    counts = {
        "n_people": people,
        "n_good": people // 2,
        "n_accepted": n,
        "n_accepted_good": n - bad,
    }
    return from_counts(counts, methods, "ab", alphas, **experiment)


def with_failures(results, method, repetitions):
    """Return results in which a method failed in some repetitions."""
    lost = (results.columns["method"] == method) & np.isin(
        results.columns["repetition"], list(repetitions)
    )
    columns = {
        name: np.where(lost, 0, values) if name.startswith("n_") else values
        for name, values in results.columns.items()
    }
    failures = tuple(
        Failure("α = 0.15", method, k, 1000 + k, f"FloatingPointError: seed {1000 + k} diverged.")
        for k in repetitions
    )
    return replace(results, columns=columns, failures=failures)


def row_of(table, name):
    """Return a method's row."""
    return next(row for row in table.rows if row["method"] == name)


def exact(methods, repetitions=6, rounds=4, people=1000, groups="a", **experiment):
    """Return results by counts: (accepted, bad) of each method, the same in each round.

    Odd repetitions have one bad applicant less and even ones one more, so that there are intervals.
    """
    shape = (1, len(methods), repetitions, rounds, len(groups))
    counts = {"n_people": np.full(shape, people), "n_good": np.full(shape, people // 2)}
    accepted, bad = (
        np.array([np.broadcast_to(by_group[part], len(groups)) for by_group in methods.values()])
        for part in (0, 1)
    )
    counts["n_accepted"] = np.broadcast_to(accepted[None, :, None, None], shape).copy()
    swing = np.where(np.arange(repetitions) % 2, -1, 1)[None, None, :, None, None]
    wrong = bad[None, :, None, None] + swing * (bad[None, :, None, None] > 0)
    counts["n_accepted_good"] = counts["n_accepted"] - wrong
    return from_counts(counts, tuple(methods), groups, **experiment)


def judged_results(rng, size=(6, 14), **options):
    """Return random results with shares of a population; some rounds accept no one."""
    results = make_results(rng, METHODS_HERE, size=size, **options)
    n = len(results)
    accepted = rng.random(n) * 0.3 * (rng.random(n) > 0.1)
    good = accepted * rng.uniform(0.75, 0.95, n)
    shares = dict(zip(SHARES, (np.full(n, 0.5), np.full(n, 0.35), accepted, good), strict=True))
    rounds = np.repeat(rng.random(n // len(results.groups)) < 0.4, len(results.groups))
    certified = rounds & (results.columns["method"] == "certified")
    columns = results.columns | shares
    columns["n_certified"] = certified * results.columns["n_people"]
    return replace(results, columns=columns)


def explored(results, *methods):
    """Return results in which these methods explored someone."""
    for name in methods:
        results.count("n_explored")[:, results.methods.index(name)] = 1
    return results


def record(round, status, more=None, group=None):
    """Return the record of a round of the certified method."""
    unknown = dict.fromkeys(one.name for one in fields(CertifiedRound))
    return unknown | {
        "setting": "α = 0.15",
        "method": "certified",
        "round": round,
        "group": group,
        "status": status,
        "more_outcomes": more,
        "curve": [],
        "notes": [],
    }
