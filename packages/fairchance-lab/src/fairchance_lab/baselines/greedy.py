"""Greedy methods: accept by a fixed cut-off on a model of the accepted applicants."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from fairchance.errors import InputError
from fairchance.methods.algorithm1.past import past_policy
from fairchance.people.intake import Batch, History
from fairchance_lab.baselines.base import CODE, Baseline, Floats, Sources
from fairchance_lab.baselines.logistic import fit_logistics, linear_scores

__all__ = [
    "ALIGNED",
    "BootstrapThompson",
    "EpsilonGreedy",
    "FrozenPast",
    "Greedy",
    "LabelAugmentation",
]

ALIGNED = 5 / 7  # where a loss of 500 and a gain of 200 break even


@dataclass(eq=False, repr=False)
class Greedy(Baseline):
    """Accept from a fixed likelihood on, under a logistic model of all outcomes so far.

    Each round refits the model, unweighted, to all accepted applicants so far and the history.
    There is no exploration: the method never learns about applicants below the first cut-off.

    Parameters
    ----------
    cutoff
        Likelihood of the good outcome from which people are accepted, in (0, 1); the break-even
        point loss / (loss + gain) is the ``aligned`` setting, 0.5 the ``published`` one.
    l2
        Strength of the penalty on coefficients, at least 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = Greedy.setting("aligned").fit(X, repaid, accepted=X[:, 0] > -0.5)
    >>> batch = method.decide(rng.normal(size=(100, 2)))
    >>> int(batch.accepted.sum()), bool((batch.score[batch.accepted] >= 5 / 7).all())
    (55, True)
    """

    cutoff: float = 0.5
    _: KW_ONLY
    l2: float = 1.0

    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"cutoff": 0.5},
        "aligned": {"cutoff": ALIGNED},
    }

    def _start(self, history: History) -> None:
        self._check_parameters()
        self._theta = np.zeros(history.X.shape[1] + 1)
        self._learn()

    def _learn(self) -> None:
        rows = self._labelled()
        self._theta = fit_logistics(rows.X, rows.outcome, l2=self.l2, start=self._theta)

    def _scores(self, people: Batch) -> Floats:
        return linear_scores(people.X, self._theta)

    def _probabilities(self, people: Batch) -> Floats:
        return (self._scores(people) >= self.cutoff).astype(np.float64)

    def _check_parameters(self) -> None:
        check_share("cutoff", self.cutoff)
        if not self.l2 >= 0:
            raise InputError(f"l2 must be at least 0, got {self.l2!r}.")


def check_share(name: str, value: Any, *, ends: bool = False) -> None:
    """Raise unless a parameter is a number in (0, 1), or in [0, 1] if the ends are allowed."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if number and (0 < value < 1 or (ends and value in (0, 1))):
        return
    raise InputError(f"{name} must be in {'[0, 1]' if ends else '(0, 1)'}, got {value!r}.")


@dataclass(eq=False, repr=False)
class FrozenPast(Baseline):
    """Accept the applicants that f_0 accepts, for ever.

    f_0 is given, or a logistic model with an intercept of who was accepted in the history, and
    accepts from the probability on that accepts as many of the history as the past did. Outcomes
    change nothing. If the history has no rejections there is no rule to imitate, and the method
    accepts all applicants.

    Parameters
    ----------
    past_policy
        f_0: a function of X that returns probabilities of acceptance, or a fitted classifier; None
        means to imitate the history.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> outcome = np.tile([0, 1], 20)
    >>> method = FrozenPast().fit(X, outcome, accepted=X[:, 0] > 0)
    >>> method.decide(np.array([[-0.5], [0.5]])).accepted.tolist()
    [False, True]
    """

    past_policy: Any = None

    def _start(self, history: History) -> None:
        self._past = past_policy(self.past_policy, None, history, self.n_features_in_)

    def _learn(self) -> None:
        """Stay as it is."""

    def _scores(self, people: Batch) -> Floats:
        score = self._past.likelihood.score(people.X, np.zeros(len(people), np.intp))
        return np.asarray(score, dtype=np.float64)

    def _probabilities(self, people: Batch) -> Floats:
        return (self._scores(people) >= self._past.cut).astype(np.float64)


@dataclass(eq=False, repr=False)
class EpsilonGreedy(Greedy):
    """Accept from the cut-off on, and each applicant below it with probability ε_t.

    Applicants from the cut-off on are never rejected, as in the code of PLOT's comparison
    (Pacchiano et al. 2021). ε_t falls in a line from ``epsilon`` to ``last`` over ``horizon``
    rounds and stays there; with both equal it is a fixed share, by which lenders test below their
    cut-off. The logged probabilities are exact.

    Parameters
    ----------
    cutoff
        Likelihood from which applicants are accepted for sure, in (0, 1).
    epsilon, last
        ε of the first round and of the last, in [0, 1].
    horizon
        Rounds over which ε falls, at least 2.
    l2
        Strength of the penalty on coefficients, at least 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = EpsilonGreedy(5 / 7, epsilon=0.05, last=0.05, random_state=0).fit(X, repaid)
    >>> batch = method.decide(rng.normal(size=(1000, 2)))
    >>> int(batch.explored.sum()), np.unique(batch.propensity).tolist()
    (14, [0.05, 1.0])
    """

    _: KW_ONLY
    epsilon: float = 0.2
    last: float = 0.01
    horizon: int = 40

    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"cutoff": 0.5, "epsilon": 0.2, "last": 0.01},
        "aligned": {"cutoff": ALIGNED, "epsilon": 0.2, "last": 0.01},
    }
    sources: ClassVar[Sources] = {"published": {CODE: ("cutoff", "epsilon", "last")}}

    def epsilon_of(self, round: int) -> float:
        """Return ε of a round.

        Examples
        --------
        >>> [round(EpsilonGreedy(horizon=20).epsilon_of(t), 3) for t in (1, 2, 20, 30)]
        [0.2, 0.19, 0.01, 0.01]
        """
        gone = min(1.0, (round - 1) / (self.horizon - 1))
        return float(self.epsilon + gone * (self.last - self.epsilon))

    def _probabilities(self, people: Batch) -> Floats:
        return np.maximum(super()._probabilities(people), self.epsilon_of(max(1, self._round)))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("epsilon", self.epsilon, ends=True)
        check_share("last", self.last, ends=True)
        if not self.horizon >= 2:
            raise InputError(f"horizon must be 2 rounds or more, got {self.horizon!r}.")


@dataclass(eq=False, repr=False)
class LabelAugmentation(Greedy):
    """Learn as if all applicants the past was sure to reject had turned out bad.

    The propensity e(x) is a logistic model of who was accepted. The rejected with e(x) below
    ``sure_below`` join the labelled rows as bad, the other rejected are left out, and decisions are
    greedy on a logistic model of all that. No outcome of a rejected person is read: theirs is
    assumed.

    Parameters
    ----------
    cutoff
        Likelihood from which people are accepted, in (0, 1).
    sure_below
        Propensity below which a rejection counts as sure, in [0, 1].
    l2
        Strength of the penalty on coefficients, at least 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = LabelAugmentation(5 / 7).fit(X, repaid, accepted=X[:, 0] > 0)
    >>> method.n_augmented_ > 0
    True
    """

    _: KW_ONLY
    sure_below: float = 0.05

    assumption: ClassVar[str] = (
        "Applicants the past was sure to reject would have turned out bad: its consistent "
        "decisions used knowledge beyond the features."
    )

    @property
    def n_augmented_(self) -> int:
        """How many rejected people counted as bad in the last fit."""
        return self._n_augmented

    def _start(self, history: History) -> None:
        self._check_parameters()
        self._selection = _selection_model(history.X, history.accepted, self.l2)
        super()._start(history)

    def _learn(self) -> None:
        rows, rejected = self._labelled(), self._rejected()
        candidates = rejected.X[rejected.round == 0]
        sure = candidates[linear_scores(candidates, self._selection) < self.sure_below]
        self._n_augmented = len(sure)
        self._theta = fit_logistics(
            np.concatenate([rows.X, sure]),
            np.append(rows.outcome, np.zeros(len(sure))),
            l2=self.l2,
            start=self._theta,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("sure_below", self.sure_below, ends=True)


def _selection_model(X: Floats, accepted: Any, l2: float) -> Floats:
    """Return a model of acceptance in the history; one that is always sure if all were accepted."""
    if accepted.all():
        return np.append(np.zeros(X.shape[1]), np.inf)
    return fit_logistics(X, accepted, l2=l2)


_TOL = 1e-5  # of the mean gradient, far below what resampling makes of it


@dataclass(eq=False, repr=False)
class BootstrapThompson(Greedy):
    """For each person draw one of B bootstrap models, and accept if it says so.

    Each round fits B logistic models to all labelled rows, each with weights of its own from
    Poisson(1). A person's model is drawn by their own coin, so the probability of acceptance is the
    share of the B models that put the person at the cut-off or above, exactly.

    Parameters
    ----------
    cutoff
        Likelihood from which a model accepts, in (0, 1).
    n_models
        B, at least 2.
    l2
        Strength of the penalty on coefficients, at least 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> repaid = (rng.random(200) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = BootstrapThompson(5 / 7, n_models=4, random_state=0).fit(X, repaid)
    >>> batch = method.decide(rng.normal(size=(500, 2)))
    >>> np.unique(batch.propensity).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """

    _: KW_ONLY
    n_models: int = 20

    def _learn(self) -> None:
        super()._learn()  # all models start from the one of all rows
        rows = self._labelled()
        weight = self._rng().poisson(1.0, (len(rows), self.n_models)).astype(np.float64)
        # A replicate without a good or without a bad row has no model; it uses all rows.
        for good in (0, 1):
            weight[:, weight[rows.outcome == good].sum(axis=0) == 0] = 1.0
        self._models = fit_logistics(
            rows.X, rows.outcome, weight, l2=self.l2, start=self._theta, tol=_TOL
        )

    def _probabilities(self, people: Batch) -> Floats:
        scores = linear_scores(people.X, self._models)
        return np.asarray((scores >= self.cutoff).mean(axis=1))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self.n_models >= 2:
            raise InputError(f"n_models must be 2 or more, got {self.n_models!r}.")
