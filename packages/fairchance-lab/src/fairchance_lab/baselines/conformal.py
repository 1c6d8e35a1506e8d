"""Conformal selection in rounds (Jin and Candès 2023), calibrated on accepted applicants only.

Conformal selection needs outcomes of applicants drawn like the batch. Under partial feedback nobody
has them, so each round accepts a small share of all applicants by a coin that looks at nothing, the
*audited*. Their outcomes calibrate. For a score S that was learned before n audited applicants
came, an applicant of the batch has the p-value

    p = (1 + #{audited: bad, S ≥ S(x)}) / (n + 1),

and the method of Benjamini and Hochberg selects the largest k applicants with p ≤ α·k/m out of m.
The audited and the batch are exchangeable and S knows none of their outcomes, so the expected share
of bad among the selected of each batch is at most α.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fairchance.core.sampling import coin_flips
from fairchance.learners.ensemble import SelectionAwareEnsemble
from fairchance.people.intake import Batch, History
from fairchance_lab.baselines.base import Baseline, Decided, Floats
from fairchance_lab.baselines.greedy import check_share

__all__ = ["ConformalSelection", "benjamini_hochberg", "conformal_p_values"]


@dataclass(eq=False, repr=False)
class ConformalSelection(Baseline):
    """Accept the selected, whose expected share of bad is at most α, and the audited.

    A score is learned from all outcomes before rounds 1, 2, 4, 8, … and calibrated on the audited
    from there on. Each is used in the second doubling after it: rounds 8 to 15 use the score
    learned before round 4. So its calibration has at least half of all audited, and which score is
    used depends on no outcome. Round 1 accepts the audited only.

    Parameters
    ----------
    alpha
        Bound on the expected share of bad among the selected of a batch, in (0, 1).
    audit
        Probability with which every applicant is audited, in (0, 1). The bound does not count
        audited applicants who are not selected.
    learner
        A scikit-learn classifier; None means the ranking of the certified method.

    Attributes
    ----------
    level_ : the p-value up to which the last batch was selected; 0 if nobody was.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> def people(n):
    ...     X = rng.normal(size=(n, 2))
    ...     return X, (rng.random(n) < 1 / (1 + np.exp(-1 - 3 * X[:, 0]))).astype(int)
    >>> X, good = people(400)
    >>> method = ConformalSelection(0.15, learner=LogisticRegression(), random_state=0)
    >>> method = method.fit(X, good, accepted=X[:, 0] > 0)
    >>> for _ in range(3):
    ...     X, good = people(1000)
    ...     batch = method.decide(X)
    ...     method = method.observe(batch.ids[batch.accepted], good[batch.accepted])
    ...     print(int(batch.explored.sum()), int(batch.accepted.sum()))
    44 44
    13 633
    22 608
    """

    alpha: float = 0.15
    _: KW_ONLY
    audit: float = 0.05
    learner: Any = None

    assumption: ClassVar[str] = (
        "All rounds draw from one population, and outcomes come before the next round."
    )
    _extra_columns: ClassVar[dict[str, Any]] = {"audited": np.bool_(False)}

    def _start(self, history: History) -> None:
        check_share("alpha", self.alpha)
        check_share("audit", self.audit)
        self._rejected_before = history.X[~history.accepted]
        self._learned = {1: self._fitted()}
        self._model = self._learned[1]
        self._bad_scores, self._n_audited, self.level_ = np.empty(0), 0, 0.0

    def _learn(self) -> None:
        """Wait for the next round, which may learn a score and always calibrates one."""

    def _decide(self, batch: Batch) -> Decided:
        t = self._round
        if t > 1 and t & (t - 1) == 0:
            self._learned[t] = self._fitted()
        first = self._first_of_calibration(t)
        self._model = self._learned[first]
        self._calibrate(first)
        p_values = self._p_values(batch)
        self.level_ = benjamini_hochberg(p_values, self.alpha)
        audited = coin_flips(np.full(len(batch), self.audit), self._bits(batch))
        return Decided(
            (p_values <= self.level_) | audited,
            self._accepting(p_values),
            self._scores(batch),
            {"audited": audited},
        )

    def _first_of_calibration(self, t: int) -> int:
        """Return the first round whose audited calibrate in round t; its score is the one to use.

        Examples
        --------
        >>> [ConformalSelection()._first_of_calibration(t) for t in (1, 2, 3, 4, 7, 8, 16)]
        [1, 1, 1, 2, 2, 4, 8]
        """
        return max(1, (1 << (t.bit_length() - 1)) // 2)

    def _calibrate(self, first: int) -> None:
        rows = self._store.parts[0]
        counted = rows["audited"] & rows.known_outcomes() & (rows["round"] >= first)
        self._n_audited = int(counted.sum())
        self._bad_scores = self._score(rows.X[counted & (rows["outcome"] == 0)])

    def _fitted(self) -> Any:
        """Return a model of all outcomes so far."""
        rows = self._labelled()
        if self.learner is not None:
            return clone(self.learner).fit(rows.X, rows.outcome)
        return SelectionAwareEnsemble(leaning="outcome").fit(
            rows.X, rows.outcome, rejected=self._rejected_before, from_history=rows.round == 0
        )

    def _score(self, X: Floats) -> Floats:
        return np.asarray(self._model.predict_proba(X)[:, 1]) if len(X) else np.empty(0)

    def _scores(self, people: Batch) -> Floats:
        return self._score(people.X)

    def _p_values(self, people: Batch) -> Floats:
        return conformal_p_values(self._scores(people), self._bad_scores, self._n_audited)

    def _probabilities(self, people: Batch) -> Floats:
        return self._accepting(self._p_values(people))

    def _accepting(self, p_values: Floats) -> Floats:
        return np.where(p_values <= self.level_, 1.0, self.audit)


def conformal_p_values(scores: Floats, bad_scores: Floats, n: int) -> Floats:
    """Return (1 + number of bad scores at or above each score) / (n + 1).

    Examples
    --------
    >>> conformal_p_values(np.array([0.9, 0.5, 0.1]), np.array([0.2, 0.5]), 3).tolist()
    [0.25, 0.5, 0.75]
    """
    below = np.searchsorted(np.sort(bad_scores), scores, side="left")
    return np.asarray((1 + bad_scores.size - below) / (n + 1))


def benjamini_hochberg(p_values: NDArray[np.float64], alpha: float) -> float:
    """Return the largest p-value that is selected at level alpha, 0 if none is.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.9, 0.09, 0.07]), 0.15)
    0.09
    >>> benjamini_hochberg(np.array([0.2, 0.9]), 0.15)
    0.0
    """
    ordered = np.sort(p_values)
    passing = np.flatnonzero(ordered <= alpha * np.arange(1, ordered.size + 1) / ordered.size)
    return float(ordered[passing[-1]]) if passing.size else 0.0
