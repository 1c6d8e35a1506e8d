"""Policies judged on everybody who could have come, not only on the batch they met.

The promise of a certificate is about the population. For a data set that is all its people with
their outcomes, for cells the cells themselves, for other populations a large draw, the same in
every repetition, with the true P(good). A method is asked for probabilities of acceptance, and is
handed features and groups for that, never an outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.lab.experiments.world_spec import WorldSpec
from secondlook.lab.simulate.finite import FiniteDomain
from secondlook.lab.simulate.people import Floats, People, Table
from secondlook.lab.simulate.populations import Population
from secondlook.lab.simulate.streams import Standardisation

__all__ = ["Everybody", "check_judgeable", "judge"]

_DRAWN = 50_000  # people of a population that has no end
_SEED = 20_240  # of that draw
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Everybody:
    """The whole population, with features as the methods of one repetition get them.

    Attributes
    ----------
    people
        Features and groups.
    mass
        Share of the population that each stands for.
    good
        P(good), or the outcome where only that is known.
    """

    people: People
    mass: Floats
    good: Floats

    @staticmethod
    def of(spec: WorldSpec, source: Table | Population, seed: int) -> Everybody:
        """Return the population of the world that a spec builds from a source and a seed.

        Examples
        --------
        >>> domain = FiniteDomain([[0.0], [1.0]], ["a", "b"], mass=[3, 1], good=[0.5, 0.9])
        >>> spec = WorldSpec("cells", n_batch=10, n_rounds=2)
        >>> everybody = Everybody.of(spec, domain, seed=0)
        >>> everybody.mass.tolist(), everybody.good.tolist()
        ([0.75, 0.25], [0.5, 0.9])
        """
        people, mass, good = _population(source)
        scale = _scale(spec, source, seed)
        people = people if scale is None else scale.apply(people)
        for array in (people.X, people.group):
            array.setflags(write=False)
        return Everybody(people, mass, good)


def _population(source: Table | Population) -> tuple[People, Floats, Floats]:
    if isinstance(source, FiniteDomain):
        return People(source.X.copy(), source.group.copy()), source.mass, source.good
    if isinstance(source, Table):
        people, good = People(source.X.copy(), source.group.copy()), source.outcome.astype(float)
    else:
        people = source.draw(_DRAWN, np.random.default_rng(_SEED))
        good = source.probability_good(people)
    return people, np.full(len(people), 1 / len(people)), good


def _scale(spec: WorldSpec, source: Table | Population, seed: int) -> Standardisation | None:
    """Return how features of that world are standardised: learned from the same people."""
    if spec.scaling == "none":
        return None
    raw = replace(spec, scaling="none").build(source, seed)
    rows = [raw.full_history().people.X]
    if spec.scaling == "stream":
        rows += [one.applicants.people.X for one in raw.batches()]
    return Standardisation.fit(np.concatenate(rows), raw.stream.features, raw.stream.unscaled)


def check_judgeable(spec: WorldSpec) -> None:
    """Raise if a world has no one population to judge policies on."""
    if spec.drift:
        raise InputError(
            f"policies are judged on one population, and this world drifts ({dict(spec.drift)}); "
            f"leave drift out, or set judged to false."
        )


def judge(
    method: Any, everybody: Everybody, segment: NDArray[np.intp], n_segments: int
) -> NDArray[np.float64]:
    """Return shares of the population under the policy of the last round, a row a segment.

    Columns are ``results.SHARES``: people, good, accepted, accepted and good, the last two expected
    under the policy, its explored part included, and NaN for a method that has no
    ``acceptance_probability``.

    Parameters
    ----------
    method
        A method that has decided a round.
    everybody
        The population.
    segment
        Number of each person's group, or segment.
    n_segments
        How many there are.
    """
    mass, good = everybody.mass, everybody.mass * everybody.good
    p = _acceptance(method, everybody.people)
    columns = (mass, good, mass * p, good * p)
    return np.column_stack([np.bincount(segment, one, n_segments) for one in columns])


def _acceptance(method: Any, people: People) -> Floats:
    ask = getattr(method, "acceptance_probability", None)
    if ask is None:
        return np.full(len(people), np.nan)
    p = np.asarray(ask(people.X, sensitive_features=people.group), dtype=np.float64)
    if p.shape != (len(people),) or not np.all((p >= -_ROUNDING) & (p <= 1 + _ROUNDING)):
        raise InputError(
            f"acceptance_probability must return one number in [0, 1] per person, shape "
            f"({len(people)},), got shape {p.shape} from {type(method).__name__}; mend it, or "
            f"leave the method without it."
        )
    return p.clip(0.0, 1.0)
