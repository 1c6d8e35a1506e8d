"""Rankings of applicants: learned from everything known at one moment, then frozen."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fairchance.core.decisions import Note
from fairchance.core.saved import saved
from fairchance.learners.ensemble import SelectionAwareEnsemble
from fairchance.learners.overlooked import NameValue, Overlooked
from fairchance.learners.wrap import fit_likelihood
from fairchance.methods.certified.evidence import Dependence
from fairchance.people.columns import Expansion
from fairchance.people.ids import keyed_bits, round_key
from fairchance.people.intake import History
from fairchance.people.likelihoods import Likelihood
from fairchance.people.store import NOT_TAKEN

__all__ = ["PastApplicants", "Ranking", "learn_ranking"]

Floats = NDArray[np.float64]
Groups = NDArray[np.intp]


@saved
@dataclass(frozen=True)
class Ranking:
    """The rank of an applicant: the share of reference applicants who look at least as good.

    Rank 0 is the best. A ranking never changes, so a policy built on it is a fixed function of the
    applicant.

    Attributes
    ----------
    likelihood
        The model.
    reference
        Sorted scores of the reference applicants: one array, or one per group for ranks within
        groups.
    mean_bad
        At each of 100 shares, the mean of 1 − score over that best share of the reference.
    notes
        What the fit of the model warned of, such as that it left the history out.
    """

    likelihood: Likelihood
    reference: tuple[Floats, ...]
    mean_bad: Floats
    notes: tuple[Note, ...] = ()

    @staticmethod
    def freeze(
        likelihood: Likelihood,
        score: Floats,
        group: Groups,
        n_groups: int,
        *,
        within: bool,
        notes: tuple[Note, ...] = (),
    ) -> Ranking:
        """Freeze the order that a model gives to applicants like those of a reference.

        ``within`` ranks applicants within their own group only.
        """
        parts = [score[group == z] for z in range(n_groups)] if within else [score]
        reference = tuple(np.sort(part if part.size else score) for part in parts)
        ordered = np.sort(score)[::-1]
        # Shares of 1 % to 100 %; each has at least one applicant.
        ends = np.maximum(1, np.ceil(np.arange(1, 101) / 100 * score.size)).astype(np.intp)
        mean_bad = 1 - np.cumsum(ordered)[ends - 1] / ends
        return Ranking(likelihood, reference, mean_bad, notes)

    def score(self, X: Any, group: Groups) -> Floats:
        """Return the model's likelihood of a good outcome."""
        if group.size == 0:
            return np.empty(0)  # many learners refuse an empty batch
        return np.asarray(self.likelihood.score(X, group), dtype=np.float64)

    def rank(self, score: Floats, group: Groups) -> Floats:
        """Return 1 − the share of reference applicants with a lower score."""
        if len(self.reference) == 1:
            return _rank_among(score, self.reference[0])
        rank = np.empty(score.size)
        for z, reference in enumerate(self.reference):
            rank[group == z] = _rank_among(score[group == z], reference)
        return rank

    def cut(self, share: float, group: Groups) -> Floats:
        """Return the score from which each applicant's rank is at most a share."""
        cuts = np.array([_score_at(share, reference) for reference in self.reference])
        return np.broadcast_to(cuts, group.size) if cuts.size == 1 else cuts[group]

    def knee(self, mistakes: float) -> float:
        """Return the largest share whose expected share of bad, by the model itself, is allowed."""
        allowed = np.flatnonzero(self.mean_bad <= mistakes)
        return float(allowed[-1] + 1) / 100 if allowed.size else 0.0


def _rank_among(score: Floats, reference: Floats) -> Floats:
    return np.asarray(1 - np.searchsorted(reference, score) / reference.size)


def _score_at(share: float, reference: Floats) -> float:
    """Return the lowest score whose rank among the reference is at most a share."""
    ranks = 1 - np.arange(reference.size + 1) / reference.size
    n_lower = int(np.argmax(ranks <= share))
    return -np.inf if n_lower == 0 else float(np.nextafter(reference[n_lower - 1], np.inf))


@saved
class PastApplicants:
    """The history as a ranking learns from it: its accepted and its rejected applicants.

    Attributes
    ----------
    X, outcome, group, bits : features, outcomes, groups and id bits of the accepted applicants.
    persons : bits of who applied, by which halves are drawn; those of ids if persons are not known.
    rejected_X, rejected_group, rejected_bits, rejected_persons : the same of the rejected, who have
        no outcomes.
    per_person : the most applications of a person that the tests allow for; None if each
        application is another person's.
    is_complete : whether nobody was forgotten. A choice of whom to forget could make a certificate.
    """

    def __init__(
        self,
        history: History,
        persons: NDArray[np.uint64] | None = None,
        per_person: int | None = None,
    ) -> None:
        X, accepted = np.asarray(history.X, dtype=np.float64), history.accepted
        self.X, self.rejected_X = X[accepted], X[~accepted]
        self.group, self.rejected_group = history.group[accepted], history.group[~accepted]
        self.bits, self.rejected_bits = history.bits[accepted], history.bits[~accepted]
        who = history.bits if persons is None else persons
        self.persons, self.rejected_persons = who[accepted], who[~accepted]
        self.per_person = None if persons is None else per_person
        self.outcome = history.outcome
        self.is_complete = True
        # Applicants who did not take the loan have no outcome to learn from.
        took = self.outcome != NOT_TAKEN
        self._keep(took, np.ones(len(self.rejected_X), np.bool_))

    def of_group(self, z: int) -> PastApplicants:
        """Return the applicants of one group, or all of them if the group has too few outcomes."""
        accepted, rejected = self.group == z, self.rejected_group == z
        if np.unique(self.outcome[accepted]).size < 2:
            return self
        part = copy.copy(self)
        part._keep(accepted, rejected)
        return part

    @property
    def everyone(self) -> tuple[Floats, Groups]:
        """Features and groups of all applicants, the accepted first."""
        return (
            np.vstack([self.X, self.rejected_X]),
            np.concatenate([self.group, self.rejected_group]),
        )

    def fold(self, number: int, split: int = 0) -> PastApplicants:
        """Return one of two random halves, the same in any order of rows; splits are independent.

        All applications of a person are in the same half: a model that has seen some of them has
        seen the outcomes of the others, too.
        """
        part, key = copy.copy(self), round_key(0, split)
        who = (self.persons, self.rejected_persons)
        part._keep(*(keyed_bits(bits, key) >> 63 == number for bits in who))
        return part

    def as_accepted_and_good(self) -> PastApplicants:
        """Return everyone with the outcome "accepted and good", which no rejected applicant has."""
        part = copy.copy(self)
        part.X, part.group = self.everyone
        part.bits = np.concatenate([self.bits, self.rejected_bits])
        part.persons = np.concatenate([self.persons, self.rejected_persons])
        rejected = np.zeros(len(self.rejected_X), np.int8)
        part.outcome = np.concatenate([self.outcome, rejected])
        nobody = slice(0)
        part.rejected_X, part.rejected_group = self.rejected_X[nobody], self.rejected_group[nobody]
        part.rejected_bits = self.rejected_bits[nobody]
        part.rejected_persons = self.rejected_persons[nobody]
        return part

    def dependence(self) -> Dependence:
        """Return which of ``everyone`` are applications of one person."""
        if self.per_person is None:
            return Dependence()
        who = np.concatenate([self.persons, self.rejected_persons])
        return Dependence(np.unique(who, return_inverse=True)[1], self.per_person)

    def forget(self, bits: NDArray[np.uint64]) -> None:
        """Delete applicants for good."""
        n = self.bits.size + self.rejected_bits.size
        self._keep(~np.isin(self.bits, bits), ~np.isin(self.rejected_bits, bits))
        self.is_complete &= n == self.bits.size + self.rejected_bits.size

    def _keep(self, accepted: NDArray[np.bool_], rejected: NDArray[np.bool_]) -> None:
        self.X, self.outcome = self.X[accepted], self.outcome[accepted]
        self.group, self.bits = self.group[accepted], self.bits[accepted]
        self.rejected_X = self.rejected_X[rejected]
        self.rejected_group = self.rejected_group[rejected]
        self.rejected_bits = self.rejected_bits[rejected]
        self.persons = self.persons[accepted]
        self.rejected_persons = self.rejected_persons[rejected]


def learn_ranking(
    past: PastApplicants,
    X: Floats,
    outcome: NDArray[np.int8],
    group: Groups,
    *,
    learner: Any,
    n_groups: int,
    expansion: Expansion | None = None,
    name_value: NameValue | None = None,
    categorical: tuple[int, ...] = (),
    imitates: bool = False,
) -> tuple[Likelihood | None, tuple[Note, ...]]:
    """Return a model that ranks applicants, and what its fit warned of.

    The model is None unless good and bad outcomes are known. For the default learner good ones are
    enough if the history also has rejected applicants to compare with.

    ``X`` are our own accepted applicants with known outcomes. If the learner's ``fit`` takes
    ``rejected`` or ``from_history``, it gets the features of the history's rejected applicants, or
    which rows are of the history. Applicants with values that the past overlooked are left out of
    the rejected (``learners/overlooked.py``); ``name_value`` names these values in a note,
    and ``categorical`` are the positions of categories. ``imitates`` lets the default learner learn
    from the rejected in any case.
    """
    ours = isinstance(learner, SelectionAwareEnsemble)
    if ours and learner.past_selection == "features":
        overlooked = Overlooked()  # a cut has many values that it never accepts
    else:
        overlooked = Overlooked.of(past.X, past.rejected_X, name_value, categorical)
        overlooked = overlooked.after(X, outcome)
    if ours and imitates:
        learner = clone(learner).set_params(past_selection="outcome")
    rejected = past.rejected_X[~overlooked.among(past.rejected_X)]
    together = np.concatenate([past.outcome, outcome])
    known = np.unique(together).tolist()
    compares = isinstance(learner, SelectionAwareEnsemble) and past.outcome.size > 0
    if known != [0, 1] and not (known == [1] and compares and len(rejected)):
        return None, ()
    likelihood, notes = fit_likelihood(
        learner,
        overlooked.neutral(np.vstack([past.X, X])),
        together,
        np.ones(together.size),
        np.concatenate([past.group, group]),
        n_groups,
        expansion=None if isinstance(learner, SelectionAwareEnsemble) else expansion,
        rejected=rejected,
        from_history=np.arange(together.size) < past.outcome.size,
    )
    return overlooked.scored_by(likelihood), (*notes, *overlooked.notes())
