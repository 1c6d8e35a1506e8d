"""Switches A1 to A9: which people there are, and what is known about them at the start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from fairchance.errors import InputError
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.simulate.people import Floats, Table
from fairchance.simulate.populations import Population
from fairchance.simulate.worlds import Past, World
from fairchance_lab.experiments.methods import Setup
from fairchance_lab.experiments.world_spec import WorldSpec

__all__ = ["released_setup", "released_world"]

_DROPPED_SHARE = 0.01


def released_world(
    spec: WorldSpec, source: Table | Population, switches: frozenset[str], seed: int
) -> tuple[WorldSpec, Table | Population]:
    """Return the world's spec and source with A7, A8 and A9; ``seed`` is the experiment's own."""
    not_applicable = switches & {"A7", "A8", "A9"} if not isinstance(source, Table) else frozenset()
    if spec.n_parts:
        not_applicable = not_applicable | (switches & {"A9"})
    if not_applicable:
        raise InputError(
            f"switches {', '.join(sorted(not_applicable))} do not apply to this world, which has "
            f"no data set to scale, cut or resample; leave them off."
        )
    if "A7" in switches:
        spec = replace(spec, scaling="stream")
    if not isinstance(source, Table):
        return spec, source
    rng = np.random.default_rng([seed, 9])
    if "A9" in switches and not spec.n_parts:
        n_parts = spec.rounds + 1
        source = _rows(source, rng.integers(len(source), size=n_parts * spec.people_a_round))
        spec = replace(spec, n_parts=n_parts, n_batch=None, n_rounds=None)
    if "A8" in switches and spec.n_parts:
        kept = round(len(source) * (1 - _DROPPED_SHARE))
        source = _rows(source, np.sort(rng.permutation(len(source))[:kept]))
    elif "A8" in switches:
        spec = replace(spec, n_batch=int(spec.people_a_round * (1 - _DROPPED_SHARE)))
    return spec, source


def _rows(table: Table, rows: np.ndarray) -> Table:
    return replace(table, X=table.X[rows], group=table.group[rows], outcome=table.outcome[rows])


def released_setup(setup: Setup, world: World, switches: frozenset[str]) -> Setup:
    """Return what methods know at the start, with A1 and A3."""
    if not switches & {"A1", "A3"}:
        return setup
    past, truth = setup.past, world.full_history()
    past_policy: _FixedLinear | None
    if "A3" in switches:
        labels = truth.outcome if "A1" in switches else np.nan_to_num(past.outcomes)
        f_0 = LogisticRegression(class_weight="balanced").fit(past.people.X, labels)
        past_policy = _FixedLinear(f_0.coef_[0], 0.0)
    elif past.accepted.all() or not past.accepted.any():
        past_policy = None  # there is no rule to imitate
    else:
        f_0 = ConstrainedLogistic().fit(past.people.X, past.accepted)
        past_policy = _FixedLinear(f_0.coef_[0], float(f_0.intercept_[0]))
    if "A1" in switches:
        past = Past(past.people, np.ones(len(truth), bool), truth.outcome.astype(np.float64))
    return replace(setup, past=past, past_policy=past_policy)


class _FixedLinear:
    """A past policy: the probability of acceptance as a logistic function of the features."""

    def __init__(self, coef: Floats, intercept: float) -> None:
        self.coef, self.intercept = coef, intercept

    def __call__(self, X: Floats) -> Floats:
        return np.asarray(expit(X[:, : self.coef.size] @ self.coef + self.intercept))
