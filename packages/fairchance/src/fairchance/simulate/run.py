"""Run a method through a world: decide a batch, then observe outcomes of the accepted only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fairchance.audit.log import DecisionLog
from fairchance.core.decisions import Decisions
from fairchance.errors import InputError
from fairchance.methods.estimator import DecidingClassifier
from fairchance.simulate.feedback import Mailbox
from fairchance.simulate.people import Applicants, People
from fairchance.simulate.worlds import World

__all__ = ["Method", "RoundResult", "decision_log", "run"]


class Method(Protocol):
    """Anything that decides batches and observes outcomes.

    Worlds that correct wrong outcomes also need ``correct(ids, outcomes)``.
    """

    def decide(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:
        """Decide a batch."""

    def observe(self, ids: Any, outcomes: Any) -> Any:
        """Learn outcomes of accepted people."""


@dataclass(frozen=True)
class RoundResult:
    """One round with its true outcomes.

    Attributes
    ----------
    applicants
        The batch with its true outcomes.
    decided
        The method's decisions.
    upcoming
        The next batch, on which f_t can be evaluated before it is learned again; None after the
        last round.
    """

    applicants: Applicants
    decided: Decisions
    upcoming: Applicants | None


def run(
    method: Method, world: World, given: Callable[[int, People], dict[str, Any]] | None = None
) -> Iterator[RoundResult]:
    """Run a method through a world, round by round.

    ``given`` returns more arguments of ``decide`` for the people of a round, such as the lender's
    own decisions.
    """
    mailbox = Mailbox()
    batches = world.batches()
    batch = next(batches, None)
    t = 0
    while batch is not None:
        t += 1
        people = batch.applicants.people
        # A world may drift as far as it likes.
        options: dict[str, Any] = (
            {"unlike_history": True} if isinstance(method, DecidingClassifier) else {}
        )
        options |= {} if given is None else given(t, people)
        decided = method.decide(people.X, sensitive_features=people.group, **options)
        decided = _checked_copy(decided, len(people))
        mailbox.post(t, decided.ids[decided.accepted], batch.sealed.select(decided.accepted))
        for ids, outcomes in mailbox.reports(t):
            method.observe(ids, outcomes)
        for ids, outcomes in mailbox.corrections(t):
            _correct(method, ids, outcomes)
        following = next(batches, None)
        upcoming = None if following is None else following.applicants
        yield RoundResult(batch.applicants, decided, upcoming)
        batch = following


def decision_log(results: Iterable[RoundResult], *, coins: bool = False) -> DecisionLog:
    """Return the decisions of a simulation for ``fairchance.audit``, as a ledger would.

    It has the true outcomes of accepted people, whenever they arrive, and no others.

    Parameters
    ----------
    results
        The rounds, such as ``run`` yields.
    coins
        Whether each acceptance was a coin of its own, as with ``CertifiedClassifier``. Otherwise
        people outside the exploit region are taken for candidates of draws of fixed size.

    Examples
    --------
    >>> from fairchance import CertifiedClassifier
    >>> from fairchance.simulate.histories import ByPolicy
    >>> from fairchance.simulate.populations import Lender
    >>> from fairchance.simulate.streams import Drawn
    >>> stream, past = Drawn(Lender(), 200, 3, 500), ByPolicy(Lender().probability_accepted_before)
    >>> world = World(stream, past, seed=0)
    >>> known = world.history()
    >>> clf = CertifiedClassifier(random_state=0)
    >>> groups = {"sensitive_features": known.people.group}
    >>> clf = clf.fit(known.people.X, known.outcomes, accepted=known.accepted, **groups)
    >>> decision_log(run(clf, world), coins=True)  # doctest: +ELLIPSIS
    DecisionLog(600 applicants in 3 rounds, ... accepted, ... outcomes)
    """
    rounds = list(results)
    if not rounds:
        raise InputError("the simulation has no rounds, so there is no log; run at least one.")

    def joined(values: Iterable[Any]) -> NDArray[Any]:
        return np.concatenate(list(values))

    people, decided = [one.applicants.people for one in rounds], [one.decided for one in rounds]
    outcomes = (np.where(one.decided.accepted, one.applicants.outcome, np.nan) for one in rounds)
    return DecisionLog(
        joined(each.accepted for each in decided),
        joined(each.propensity for each in decided),
        joined(outcomes),
        X=joined(each.X for each in people),
        sensitive_features=joined(each.group for each in people),
        round=joined(np.full(len(each), each.round) for each in decided),
        score=joined(each.score for each in decided),
        drawn=None if coins else joined(~each.exploit for each in decided),
        exploit=joined(each.exploit for each in decided),
    )


def _checked_copy(decided: Decisions, n: int) -> Decisions:
    """Check decisions and return a read-only copy, so that methods cannot change them later."""
    if not isinstance(decided, Decisions):
        raise InputError(f"decide must return Decisions, got {type(decided).__name__}.")
    accepted, exploit, ids = decided.accepted, decided.exploit, decided.ids
    for name, array in (("accepted", accepted), ("exploit", exploit)):
        if not isinstance(array, np.ndarray) or array.dtype != np.bool_ or array.shape != (n,):
            raise InputError(
                f"{name} must hold True or False for each person, an array of shape ({n},); "
                f"got {type(array).__name__} of {getattr(array, 'dtype', 'no')} values with shape "
                f"{np.shape(array)}."
            )
    if np.shape(ids) != (n,) or np.unique(ids).size != n:
        raise InputError(f"decisions must have {n} different ids, got {np.size(ids)}.")
    copies = [np.array(array) for array in (ids, accepted, exploit)]
    for array in copies:
        array.setflags(write=False)
    return replace(decided, ids=copies[0], accepted=copies[1], exploit=copies[2])


def _correct(method: Method, ids: Any, outcomes: Any) -> None:
    correct = getattr(method, "correct", None)
    if correct is None:
        raise InputError(
            f"this world corrects outcomes, and {type(method).__name__} has no method "
            f"correct(ids, outcomes); add it, or set corrected_after to None."
        )
    correct(ids, outcomes)
