"""The policy of a round of the certified method, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import Decisions
from fairchance.core.sampling import ramped_coins
from fairchance.core.saved import saved
from fairchance.methods.certified.rounds import ChosenPolicy
from fairchance.methods.policy import Policy
from fairchance.people.intake import Batch, Reader
from fairchance.people.likelihoods import GroupedLikelihood, Likelihood
from fairchance.people.tables import InputTable

__all__ = ["CertifiedPolicy", "likelihood_of"]

_STATUSES = ("shadow", "pilot", "incumbent", "certified")  # the first of all groups is the round's


@saved
@dataclass(frozen=True, eq=False)
class CertifiedPolicy(Policy):
    """Independent coins with the probabilities of a rung, for all applicants or by group.

    Attributes
    ----------
    choices
        The rungs of ladders without evidence, one for all applicants or one per group.

    Examples
    --------
    >>> from fairchance import CertifiedClassifier
    >>> X = np.arange(200.0)[:, None]
    >>> clf = CertifiedClassifier(random_state=0).fit(X, X[:, 0] > 20, accepted=X[:, 0] > 10)
    >>> policy = clf.open_round()
    >>> one, two = (policy.decide(X[rows], ids=rows + 200) for rows in np.split(np.arange(200), 2))
    >>> clf.close_round([two, one])
    ClosedRound(round 1: 200 applicants, 20 by score, 27 explored)
    """

    round: int
    ramp: float
    needs_incumbent: bool
    choices: tuple[ChosenPolicy, ...]
    reader: Reader
    round_key: np.uint64
    ramp_key: np.uint64
    versions: dict[str, str]
    expires: str | None = None
    inputs: InputTable | None = None

    @property
    def status(self) -> str:  # type: ignore[override]
        """``"shadow"``, ``"pilot"``, ``"incumbent"`` or ``"certified"``."""
        return min((choice.status for choice in self.choices), key=_STATUSES.index)

    @property
    def certified(self) -> bool:  # type: ignore[override]
        """Whether the policy of every group is certified."""
        return self.status == "certified"

    def stated(self) -> tuple[dict[str, Any], ...]:
        """Return the status and the share that the records of its round repeat."""
        return tuple({"status": one.status, "share": one.sure_share} for one in self.choices)

    def decide_batch(self, batch: Batch) -> Decisions:
        """Decide on applicants that were read, also after the policy has expired."""
        n = len(batch)
        pi, score, threshold = np.empty(n), np.empty(n), np.empty(n)
        sure = np.empty(n, np.bool_)
        for z, choice in enumerate(self.choices):
            rows = self.rows_of(batch.group, z)
            ladder, X, group = choice.ladder, batch.X[rows], batch.group[rows]
            score[rows] = ladder.ranking.score(X, group)
            at = ladder.place(score[rows], X, group).beside(
                None if batch.incumbent is None else batch.incumbent[rows],
                None if batch.barred is None else batch.barred[rows],
            )
            pi[rows] = choice.policy(at)
            sure[rows] = choice.sure(at)
            threshold[rows] = ladder.ranking.cut(choice.sure_share, group)
        accepted, p = ramped_coins(pi, batch.incumbent, self.ramp, *self.coins(batch))
        return Decisions(
            batch.ids,
            accepted,
            sure,
            score,
            p,
            self.round,
            batch.backend,
            self.certified,
            group_mode=self.reader.group_mode,
            threshold=threshold,
            incumbent=batch.incumbent,
            barred=batch.barred,
            ramp=self.ramp,
            status=self.status,
            applicants=batch,
        )

    @property
    def likelihood(self) -> Likelihood:
        """The model that gives the scores."""
        return likelihood_of(self.choices)

    def rows_of(self, group: NDArray[np.intp], z: int) -> NDArray[np.intp]:
        """Return the rows of the applicants whom one of the choices decides on."""
        return np.arange(group.size) if len(self.choices) == 1 else np.flatnonzero(group == z)


def likelihood_of(choices: tuple[ChosenPolicy, ...]) -> Likelihood:
    """Return the model of these policies."""
    parts = tuple(choice.ladder.ranking.likelihood for choice in choices)
    return parts[0] if len(parts) == 1 else GroupedLikelihood(parts)
