"""Kilbertus et al. 2020: learn a randomised policy by the gradient of what it earns.

"Fair Decisions Despite Imperfect Predictions": predictions from outcomes that a cut-off selected
may never lead to the best policy. So accept each applicant with some probability, weight outcomes
by it, and follow the gradient. This does in rounds what the authors' code does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fairchance.errors import InputError
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.people.intake import Batch, History
from fairchance_lab.baselines.base import (
    CODE,
    ICML,
    RELEASED,
    Baseline,
    Decided,
    Floats,
    Labelled,
    Sources,
    beyond_group,
)

__all__ = [
    "Ascent",
    "Benefit",
    "KilbertusPolicy",
    "PolicyRows",
    "Update",
    "acceptance",
    "climb",
    "penalty_gradient",
    "slopes",
]


_REFRESH = 8  # steps for which one gradient of a penalty over many people serves


@dataclass(frozen=True)
class PolicyRows:
    """Accepted people with outcomes.

    Attributes
    ----------
    phi
        Features, with a column of ones.
    worth
        (y − c)/π'.
    benefit
        1/π' for demographic parity, y/π' for equal opportunity.
    group
        Codes of groups.
    """

    phi: Floats
    worth: Floats
    benefit: Floats
    group: NDArray[np.intp]

    def __len__(self) -> int:
        return int(self.worth.size)


@dataclass(frozen=True)
class Benefit:
    """The applicants for which the benefits of groups are measured.

    Attributes
    ----------
    phi
        Their features, with a column of ones.
    share
        A row a group: ``b = share @ π_θ``.
    scale
        Ratio of a mean over accepted rows to one over all applicants: the mean of 1/π'.
    """

    phi: Floats
    share: Floats
    scale: float

    def penalty_gradient(self, theta: Floats, semi: bool) -> Floats:
        """Return the gradient of the penalty at λ = 1, on the scale of means over accepted rows."""
        margin = self.phi @ theta
        taken, slope = acceptance(margin, semi), slopes(margin, semi)
        return self.scale * penalty_gradient(taken, slope, self.share, self.phi)


@dataclass(frozen=True)
class Ascent:
    """How to climb.

    Attributes
    ----------
    semi
        Whether the policy is semi-logistic.
    rate
        Length of steps.
    expected
        Whether slopes are expectations over the policy's own coins, or a fresh draw of these.
    penalty
        λ.
    n_groups
        Number of groups.
    """

    semi: bool
    rate: float
    expected: bool
    penalty: float
    n_groups: int


def acceptance(margin: Floats, semi: bool) -> Floats:
    """Return π at margins θ·φ.

    Examples
    --------
    >>> acceptance(np.array([-1.0, 1.0]), semi=True).round(3).tolist()
    [0.269, 1.0]
    """
    p: Floats = expit(margin)
    return np.where(margin >= 0, 1.0, p) if semi else p


def slopes(margin: Floats, semi: bool, uniform: Floats | None = None) -> Floats:
    """Return the slope of π at margins: its expectation, or a draw by uniform numbers.

    A drawn slope is ``d·∇log π``: zero for those the draw rejects, right on average.

    Examples
    --------
    >>> slopes(np.zeros(1), semi=False).tolist()
    [0.25]
    >>> slopes(np.zeros(2), semi=False, uniform=np.array([0.3, 0.7])).tolist()
    [0.5, 0.0]
    """
    p: Floats = expit(margin)
    slope = 1.0 - p
    slope *= p if uniform is None else uniform < p
    if semi:
        slope *= margin < 0
    return slope


def penalty_gradient(taken: Floats, slope: Floats, share: Floats, phi: Floats) -> Floats:
    """Return the gradient of ``1/2 · Σ_{s<r} (b_s − b_r)²``, with ``b = share @ π``."""
    b = share @ taken
    contrast = b.size * b - b.sum()
    gradient: Floats = ((contrast @ share) * slope) @ phi
    return gradient


def _group_means(group: NDArray[np.intp], benefit: Floats, n_groups: int) -> Floats:
    """Return the shares that turn decisions into means over those groups that are there."""
    member = group == np.arange(n_groups)[:, None]
    size = member.sum(axis=1)
    there = size > 0
    share: Floats = member[there] * benefit / size[there, None]
    return share


def climb(
    theta: Floats,
    rows: PolicyRows,
    minibatches: Iterable[NDArray[np.intp]],
    ascent: Ascent,
    rng: np.random.Generator,
    benefit: Benefit | None,
) -> Floats:
    """Return θ after a step of gradient ascent for each minibatch.

    Parameters
    ----------
    theta
        Where to start; not changed.
    rows
        Accepted people with outcomes.
    minibatches
        Numbers of the rows of each step.
    ascent
        How to climb.
    rng
        Draws of the policy's coins.
    benefit
        Applicants for which benefits are measured; None measures them in each minibatch, as means
        over its accepted rows.
    """
    theta, gradient = theta.copy(), np.zeros_like(theta)
    for i, some in enumerate(minibatches):
        phi = rows.phi[some]
        uniform = None if ascent.expected else rng.random(some.size)
        margin = phi.dot(theta)
        slope = slopes(margin, ascent.semi, uniform)
        if ascent.penalty:
            if benefit is None:
                gradient = _minibatch_penalty(rows, some, margin, slope, uniform, ascent)
            elif i % _REFRESH == 0:
                gradient = benefit.penalty_gradient(theta, ascent.semi)
            theta -= (ascent.rate * ascent.penalty) * gradient
        slope *= rows.worth[some] * (ascent.rate / some.size)
        theta += slope.dot(phi)
    return theta


def _minibatch_penalty(
    rows: PolicyRows,
    some: NDArray[np.intp],
    margin: Floats,
    slope: Floats,
    uniform: Floats | None,
    ascent: Ascent,
) -> Floats:
    """Return the published form's gradient: benefits are means over accepted rows."""
    taken = acceptance(margin, ascent.semi)
    taken = taken if uniform is None else (uniform < taken).astype(np.float64)
    share = _group_means(rows.group[some], rows.benefit[some], ascent.n_groups)
    return penalty_gradient(taken, slope, share, rows.phi[some])


_RIDGE = 1e-3  # a row's share of the penalty that keeps a first model of separable outcomes finite
_REFERENCE = 500  # applicants of a group that its benefit is measured on


@dataclass(frozen=True)
class Update:
    """What one round of learning rested on.

    Attributes
    ----------
    round
        The last round decided before it.
    n_rows, n_steps
        Accepted people with outcomes, and steps of gradient ascent.
    clip_rate
        Share of these people whose weight was cut.
    moving_share
        Share of them with a slope at the end; the others can teach a semi-logistic policy nothing.
    """

    round: int
    n_rows: int
    n_steps: int
    clip_rate: float
    moving_share: float


class KilbertusPolicy(Baseline):
    """Accept with a logistic probability that climbs ``E[π(x)·(y − c)] − λ/2·Σ (b_s − b_r)²``.

    The history fits a model of outcomes, whose intercept is shifted by log((1 − c)/c) so that the
    policy accepts with probability 1/2 where the outcome is good with probability c. From then on
    only people accepted by the policy itself count, weighted by one over their logged probability.
    There may be any number of groups; the FDR is not controlled.

    Parameters
    ----------
    family
        ``"logistic"``, or ``"semi"``: accept for sure from probability 1/2 on.
    cost
        c, what accepting costs where a good outcome is worth 1: loss/(gain + loss).
    learn_from
        ``"all"`` outcomes of our own rounds, or the ``"recent"`` round's only.
    learning_rate, batch_size, epochs
        Length of steps, rows of a minibatch, and passes of a round. A pass goes once over the rows
        learned from, in random order, and ends after as many rows as the last round had applicants:
        a round takes epochs·⌈min(rows, applicants)/batch_size⌉ steps.
    steps
        Number of steps in each round instead of ``epochs``, each with rows drawn with replacement.
    parity
        What the penalty compares between groups: ``"demographic"`` decisions d, or
        ``"opportunity"`` d·y; None for no penalty.
    penalty
        λ.
    exact_parity
        Measure benefits over all applicants of the last round (``"opportunity"``: over accepted
        rows, weighted to represent them), at most 500 of a group. False measures them over the
        accepted rows of each minibatch, as published, which is not what J says: its rates have the
        accepted for denominators.
    expected_draws
        Take the expectation over the policy's coins in the gradient; False draws them, as it was
        published, with the same mean and more noise.
    clip
        Smallest probability by which an outcome is divided.
    blind
        Leave out features that the group determines, such as its own column, so that groups matter
        through the penalty only.
    group_as_feature
        Append the group to the features.
    pos_label
        Label of the good outcome; None if outcomes are 0 and 1, False and True, or −1 and 1.
    random_state
        Seed.

    Attributes
    ----------
    updates_
        An :class:`Update` for each round of learning, with its number of steps.
    coef_, intercept_
        The policy in use, on standardised features, without those left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def people(n):
    ...     X = rng.normal(size=(n, 2))
    ...     return X, (rng.random(n) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> X, good = people(500)
    >>> method = KilbertusPolicy.setting("aligned", random_state=0)
    >>> method = method.fit(X, good, accepted=X[:, 1] > 0)
    >>> for _ in range(5):
    ...     X, good = people(500)
    ...     batch = method.decide(X)
    ...     method = method.observe(batch.ids[batch.accepted], good[batch.accepted])
    >>> method.updates_[-1].n_rows > 500, bool((batch.propensity > 0).all())
    (True, True)
    """

    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"cost": 0.6, "expected_draws": False},
        "aligned": {"cost": 5 / 7, "expected_draws": False},
        "icml": {
            "cost": 0.6,
            "expected_draws": False,
            "learn_from": "recent",
            "learning_rate": 0.01,
            "batch_size": 128,
            "steps": 128,
            "parity": "demographic",
            "penalty": 0.5,
            "blind": False,
        },
    }
    # Published: the authors' configuration for COMPAS, which runs both families on all outcomes and
    # on the recent ones. The paper implemented here states neither λ nor whether groups are used.
    sources: ClassVar[Sources] = {
        "published": {
            CODE: (
                "family",
                "cost",
                "learn_from",
                "learning_rate",
                "batch_size",
                "epochs",
                "steps",
                "parity",
                "expected_draws",
                "blind",
            )
        },
        "icml": {
            ICML: (
                "family",
                "cost",
                "learn_from",
                "learning_rate",
                "batch_size",
                "steps",
                "parity",
            ),
            RELEASED: ("penalty", "blind"),
            CODE: ("expected_draws",),
        },
    }

    def __init__(
        self,
        *,
        family: Literal["logistic", "semi"] = "logistic",
        cost: float = 5 / 7,
        learn_from: Literal["all", "recent"] = "all",
        learning_rate: float = 0.1,
        batch_size: int = 64,
        epochs: int = 40,
        steps: int | None = None,
        parity: Literal["demographic", "opportunity"] | None = None,
        penalty: float = 0.1,
        exact_parity: bool = True,
        expected_draws: bool = True,
        clip: float = 0.01,
        blind: bool = True,
        group_as_feature: bool = False,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.family = family
        self.cost = cost
        self.learn_from = learn_from
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.steps = steps
        self.parity = parity
        self.penalty = penalty
        self.exact_parity = exact_parity
        self.expected_draws = expected_draws
        self.clip = clip
        self.blind = blind
        self.group_as_feature = group_as_feature
        self.pos_label = pos_label
        self.random_state = random_state

    @property
    def coef_(self) -> Floats:
        """Slopes of the policy in use, on standardised features, without those left out."""
        return self._theta[1:].copy()

    @property
    def intercept_(self) -> float:
        """Intercept of the policy in use."""
        return float(self._theta[0])

    def _start(self, history: History) -> None:
        self._check()
        X = np.asarray(history.X, dtype=np.float64)
        appended = self._n_groups - 1 if self.group_as_feature else 0
        own = np.arange(X.shape[1]) < X.shape[1] - appended
        spread = X.std(axis=0)
        self._centre = np.where(own, X.mean(axis=0), 0.0)
        self._spread = np.where(own & (spread > 0), spread, 1.0)
        everything = np.ones(X.shape[1], np.bool_)
        self._kept = beyond_group(X, history.group) if self.blind else everything
        self.updates_: list[Update] = []
        self._n_applicants = 0  # of the last round
        self._theta = self._first()

    def _first(self) -> Floats:
        """Return the policy that the history's outcomes give."""
        past = self._labelled()
        model = ConstrainedLogistic(l2=_RIDGE * len(past))
        model.fit(self._phi(past.X)[:, 1:], past.outcome)
        shift = np.log((1 - self.cost) / self.cost)
        return np.append(model.intercept_ + shift, model.coef_[0])

    def _phi(self, X: Any) -> Floats:
        X = (np.asarray(X, dtype=np.float64) - self._centre) / self._spread
        return np.hstack([np.ones((X.shape[0], 1)), X[:, self._kept]])

    def _decide(self, batch: Batch) -> Decided:
        self._n_applicants = len(batch)
        return super()._decide(batch)

    def _probabilities(self, people: Batch) -> Floats:
        return acceptance(self._phi(people.X) @ self._theta, self.family == "semi")

    def _scores(self, people: Batch) -> Floats:
        return acceptance(self._phi(people.X) @ self._theta, semi=False)

    def _learn(self) -> None:
        own = self._labelled().own()
        if len(own) == 0:  # an outcome of the history was corrected before any of ours came
            self._theta = self._first()
            return
        if self.learn_from == "recent":
            own = own.of(own.round == own.round.max())
        weight = 1 / np.maximum(own.propensity, self.clip)
        rows = self._rows(own, weight)
        rng = self._rng()
        ascent = self._ascent()
        benefit = self._benefit(own, rows, weight, rng) if ascent.penalty else None
        minibatches = list(self._minibatches(len(rows), rng))
        self._theta = climb(self._theta, rows, minibatches, ascent, rng, benefit)
        moving = 1.0 if not ascent.semi else float((rows.phi @ self._theta < 0).mean())
        cut = float((own.propensity < self.clip).mean())
        self.updates_.append(Update(self._round, len(own), len(minibatches), cut, moving))

    def _rows(self, own: Labelled, weight: Floats) -> PolicyRows:
        benefit = weight * own.outcome if self.parity == "opportunity" else weight
        return PolicyRows(self._phi(own.X), (own.outcome - self.cost) * weight, benefit, own.group)

    def _minibatches(self, n: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
        """Yield the rows of each step, of the n that are learned from."""
        if self.steps is not None:
            yield from rng.integers(n, size=(self.steps, self.batch_size))
            return
        for _ in range(self.epochs):
            order = rng.permutation(n)[: self._n_applicants]
            for begin in range(0, order.size, self.batch_size):
                yield order[begin : begin + self.batch_size]

    def _ascent(self) -> Ascent:
        return Ascent(
            semi=self.family == "semi",
            rate=self.learning_rate,
            expected=self.expected_draws,
            penalty=0.0 if self.parity is None or self._n_groups < 2 else self.penalty,
            n_groups=self._n_groups,
        )

    def _benefit(
        self, own: Labelled, rows: PolicyRows, weight: Floats, rng: np.random.Generator
    ) -> Benefit | None:
        """Return the applicants for which benefits are measured; None means each minibatch."""
        if not self.exact_parity:
            return None
        scale = float(weight.mean())
        if self.parity == "opportunity":
            some = self._some_of_each(own.group, rng)
            return Benefit(
                rows.phi[some],
                self._shares(own.group[some], rows.benefit[some], weight[some]),
                scale,
            )
        applicants = self._all_applicants()
        last = np.flatnonzero(applicants.round == self._round)
        some = last[self._some_of_each(applicants.group[last], rng)]
        ones = np.ones(some.size)
        return Benefit(
            self._phi(applicants.X[some]), self._shares(applicants.group[some], ones, ones), scale
        )

    def _some_of_each(self, group: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
        """Return rows of at most 500 of each group, drawn at random."""
        order = rng.permutation(group.size)
        kept = [order[group[order] == z][:_REFERENCE] for z in range(self._n_groups)]
        return np.concatenate(kept)

    def _shares(self, group: NDArray[np.intp], benefit: Floats, weight: Floats) -> Floats:
        """Return a row for each group that is there: benefits over the weight of its members."""
        member = group == np.arange(self._n_groups)[:, None]
        total = member @ weight
        there = total > 0
        return np.asarray(member[there] * benefit / total[there, None])

    def _check(self) -> None:
        for name, allowed in (
            ("family", ("logistic", "semi")),
            ("learn_from", ("all", "recent")),
            ("parity", (None, "demographic", "opportunity")),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}.")
        for name, allowed_range, valid in (
            ("cost", "in (0, 1)", 0 < self.cost < 1),
            ("learning_rate", "positive", 0 < self.learning_rate < np.inf),
            ("batch_size", "1 or more", self.batch_size >= 1),
            ("epochs", "1 or more", self.epochs >= 1),
            ("steps", "1 or more, or None", self.steps is None or self.steps >= 1),
            ("penalty", "0 or more", 0 <= self.penalty < np.inf),
            ("clip", "in (0, 1]", 0 < self.clip <= 1),
        ):
            if not valid:
                raise InputError(f"{name} must be {allowed_range}, got {getattr(self, name)!r}.")
        if self.parity is not None and self._intake.groups is None:
            raise InputError(
                f"parity={self.parity!r} compares groups, and fit got none; pass "
                f"sensitive_features to fit, or set parity to None."
            )
