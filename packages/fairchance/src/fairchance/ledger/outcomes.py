"""Outcomes that are handed to a program: read, checked and compared with the record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.frames import as_array, column, plain
from fairchance.ledger.base import STATES, Entry, HeadCounts, Standing
from fairchance.ledger.encoding import Shape
from fairchance.ledger.sql import LedgerReader
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.people.likeness import Checks, excess
from fairchance.words.batches import unlike_expected_words

__all__ = ["TakeUpWindow", "UnlikeExpected", "check_states", "compare_outcomes", "new_outcomes"]
__all__ += ["outcomes_are_final", "read_outcomes", "unique_outcomes"]

_ENOUGH = 5  # outcomes before a file of them, or those of the past, are judged


def outcomes_are_final(classifier: Any) -> bool:
    """Return whether an outcome can never be withdrawn, nor a withdrawal be undone.

    Certificates need this: otherwise bad outcomes could be withdrawn after a look at the tests.
    """
    return isinstance(classifier, CertifiedClassifier)


def read_outcomes(outcomes: Any, n: int, shape: Shape, about: Mapping[str, Any]) -> list[str]:
    """Return outcomes as states.

    Labels are those of the history, and those that a configuration adds in ``about``.
    """
    values = column(np.atleast_1d(as_array(outcomes)), n, "outcomes", per="id")
    good, bad = values == shape.good, values == shape.bad
    allowed = f"{shape.bad!r} or {shape.good!r}, as in the history"
    advice = "map it to one of them, or leave out applicants without an outcome"
    if about and not np.all(good | bad):
        from fairchance.ledger.config import Labels  # noqa: PLC0415 - it imports every learner

        distinct, place = np.unique(values.astype(np.str_), return_inverse=True)
        words = [Labels.canonical(word) for word in distinct.tolist()]
        labels = Labels.read(about) or Labels((), ())
        good = good | np.isin(words, labels.good)[place]
        bad = bad | np.isin(words, labels.bad)[place]
        configured = ", ".join(map(repr, (*labels.bad, *labels.good)))
        if configured:
            allowed += f", or a label of its configuration ({configured})"
        if np.isin(words, labels.withdrawn).any():
            advice = "withdraw applicants whose outcome will never be known, and map the others"
        if np.isin(words, labels.not_taken).any():
            advice = "record those who did not take the loan with not_taken, and map the others"
    if not np.all(good | bad):
        strange = values[np.flatnonzero(~(good | bad))[0]]
        raise InputError(f"outcomes must be {allowed}, got {plain(strange)!r}; {advice}.")
    states: list[str] = np.where(good, "good", "bad").tolist()
    return states


def check_states(names: Sequence[str], states: Sequence[str]) -> None:
    """Raise unless each id has one of the states that a ledger stores."""
    if len(names) != len(states):
        raise InputError(
            f"there must be one outcome per id, got {len(states)} outcomes for {len(names)} ids; "
            f"make the lists equally long."
        )
    strange = [state for state in states if state not in STATES]
    if strange:
        raise InputError(
            f"outcomes must be {', '.join(map(repr, STATES))} here, got {strange[0]!r}; map it."
        )


def unique_outcomes(names: Sequence[str], states: Sequence[str]) -> dict[str, str]:
    """Return one state per id; the same outcome may be given twice, but not two outcomes."""
    unique: dict[str, str] = {}
    for name, state in zip(names, states, strict=True):
        if unique.setdefault(name, state) != state:
            raise InputError(f"outcomes contradict each other for id {name!r}; give one per id.")
    return unique


def new_outcomes(
    outcomes: Mapping[str, str], standing: Standing, *, final: bool
) -> list[tuple[str, NDArray[np.intp]]]:
    """Return which outcomes are not on the record yet, by kind of entry, ordered by applicant.

    ``final`` means that an outcome and a withdrawal exclude each other for good.
    """
    now = np.array([*outcomes.values()], np.object_)
    before = np.array(standing.states, np.object_)
    first = np.array([state is None for state in standing.states], np.bool_)
    changed = ~first & (before != now)
    excluded = changed & ((before == "withdrawn") | (now == "withdrawn"))
    if final and excluded.any():
        raise InputError(
            f"id {list(outcomes)[int(np.argmax(excluded))]!r} has an outcome or was withdrawn, and "
            f"the other is impossible from then on in a certified program; nothing was recorded, "
            f"remove it."
        )
    order = np.argsort(standing.persons, kind="stable")
    kinds = ("outcomes", order[first[order]]), ("correction", order[changed[order]])
    return [(kind, rows) for kind, rows in kinds if rows.size]


@dataclass(frozen=True)
class TakeUpWindow:
    """How long after the decision it may be recorded that an applicant did not take the loan.

    It is shorter than the time in which a loan can go bad; otherwise bad loans could be dropped.

    Examples
    --------
    >>> TakeUpWindow.read("2 rounds"), TakeUpWindow.read("1 day")
    (TakeUpWindow(length=2, unit='rounds'), TakeUpWindow(length=1, unit='days'))
    """

    length: int
    unit: str

    @staticmethod
    def read(text: Any) -> TakeUpWindow:
        """Read the text of a configuration."""
        found = re.fullmatch(r"(\d{1,5}) (round|day)s?", text) if isinstance(text, str) else None
        if found is None:
            raise InputError(
                f"not_taken_within must be such as '2 rounds' or '30 days', got {text!r}; change "
                f"it."
            )
        return TakeUpWindow(int(found[1]), f"{found[2]}s")

    @staticmethod
    def of(about: Mapping[str, Any]) -> TakeUpWindow:
        """Return the window of a program; raise if none was fixed when it was made."""
        if "not_taken_within" not in about:
            raise InputError(
                "the program was made without not_taken_within, so nobody can be recorded as not "
                "having taken the loan; withdraw them, and they count as bad."
            )
        return TakeUpWindow.read(about["not_taken_within"])

    def over(
        self,
        batches: Sequence[Entry],
        opened: Entry | None,
        persons: NDArray[np.int64],
        now: datetime,
    ) -> NDArray[np.bool_]:
        """Return whether the window is over for applicants of the batches decided until ``now``.

        It begins when a round is closed, so it is not over for applicants of the open round.
        """
        if opened is not None:
            before = persons < opened.people_range.start
            over = np.zeros(persons.size, np.bool_)
            over[before] = self.over(batches, None, persons[before], now)
            return over
        place = np.searchsorted([one.people_range.start for one in batches], persons, "right") - 1
        if self.unit == "rounds":
            return np.asarray(len(batches) - 1 - place > self.length)
        late = [now - one.when > timedelta(days=self.length) for one in batches]
        return np.array([*late, True])[place]  # the last is for the history


@dataclass(frozen=True)
class UnlikeExpected:
    """First outcomes that are not as expected, or outcomes against the record.

    Attributes
    ----------
    bad, of
        How many are bad, and of how many.
    expected
        The share that was expected; for outcomes against the record, the share there.
    stops
        Whether they would fit better with good and bad exchanged, by more than the level ``stop``,
        or leave a round with hardly an outcome.
    corrected
        How many contradict the record; 0 for first outcomes.
    withdrawn, not_taken
        How many applicants of some rounds have no outcome now, of those that the rounds accepted;
        0 unless they are too many.
    """

    bad: int
    of: int
    expected: float
    stops: bool
    corrected: int = 0
    withdrawn: int = 0
    not_taken: int = 0

    def check(self) -> None:
        """Raise if the outcomes must not be recorded without a confirmation."""
        if self.stops:
            raise InputError(
                f"the outcomes contradict what was expected: {unlike_expected_words(self)} Nothing "
                f"was recorded: correct the outcomes, or, if they are right, record them with "
                f"{{option}}.",
                option="unlike_expected",
            )


def compare_outcomes(
    reader: LedgerReader, classifier: Any, standing: Standing, states: Sequence[Any], checks: Checks
) -> dict[str, UnlikeExpected]:
    """Compare outcomes with what was expected; return what is implausible, by kind of entry.

    First outcomes of all applicants that the program accepted are compared. Expected is the largest
    of α, the mean risk by the recorded scores, and the shares of bad in the history and among the
    program's outcomes so far. So a pilot or a poor score stops nothing. Outcomes that are all bad
    may be the early ones of their rounds, so pending ones count as good then. Known outcomes that
    come again look exchanged if most contradict the record and both good and bad ones do; ordinary
    corrections are few, or turn good outcomes bad. A file that leaves most of the accepted
    applicants of its rounds withdrawn, or without a loan, has probably the wrong column, unless the
    rounds before were like that. A few outcomes are always plausible.
    """
    now = np.array(states, np.str_)
    before = np.array([state or "" for state in standing.states], np.str_)
    usable = np.isin(now, ("good", "bad"))
    new = (before == "") & ~standing.overridden & (standing.round > 0)
    first = usable & new
    known = usable & np.isin(before, ("good", "bad"))
    found = {
        "outcomes": _lost_unlike(reader, now[new], standing.round[new], checks)
        or _first_unlike(
            reader, classifier, now[first], standing.score[first], standing.round[first], checks
        ),
        "correction": _known_unlike(before[known], now[known], checks),
    }
    return {kind: unlike for kind, unlike in found.items() if unlike is not None}


def _first_unlike(
    reader: LedgerReader,
    classifier: Any,
    now: NDArray[np.str_],
    score: NDArray[np.floating],
    rounds: NDArray[np.int64],
    checks: Checks,
) -> UnlikeExpected | None:
    bad, of, alpha = int((now == "bad").sum()), now.size, classifier.bound_
    if of < _ENOUGH or alpha is None:
        return None
    expected = max(alpha, 1 - float(np.nan_to_num(score, nan=1.0).mean()))
    size = excess(bad, of, expected)
    if size <= checks.warn:  # which spares counting
        return None
    counts = reader.head_counts(groups=False)
    for n_bad, n in _known_outcomes(reader, counts):
        if n >= _ENOUGH:
            expected = max(expected, n_bad / n)
            size = min(size, excess(bad, of, n_bad / n, n))
    if size <= checks.warn:
        return None
    # Without outcomes in the history all scores are 0.5, and both ways fit equally well.
    stops = size > checks.stop and bad / of > 0.5 >= expected
    if stops and bad == of:
        asked = counts.accepted & (counts.override < 0) & np.isin(counts.round, rounds)
        n_bad = bad + int(counts.n[asked & (counts.state == STATES.index("bad"))].sum())
        stops = n_bad / int(counts.n[asked].sum()) - expected > checks.stop
    return UnlikeExpected(bad, of, expected, stops)


def _lost_unlike(
    reader: LedgerReader, now: NDArray[np.str_], rounds: NDArray[np.int64], checks: Checks
) -> UnlikeExpected | None:
    for state in ("withdrawn", "not_taken"):
        lost = now == state
        if np.count_nonzero(lost) < _ENOUGH or checks.stop >= 1:
            continue
        counts = reader.head_counts(groups=False)
        ours = counts.accepted & (counts.override < 0) & (counts.round > 0)
        here = np.isin(counts.round, rounds[lost])
        before, of = (int(counts.n[ours & rows].sum()) for rows in (~here, here))
        lost_before, lost_here = (
            int(counts.n[ours & rows & (counts.state == STATES.index(state))].sum())
            for rows in (~here, here)
        )
        n, usual = lost_here + int(np.count_nonzero(lost)), lost_before / max(1, before)
        if n / of - usual > max(0.5, checks.stop):
            return UnlikeExpected(0, of, usual, True, **{state: n})
    return None


def _known_unlike(
    before: NDArray[np.str_], now: NDArray[np.str_], checks: Checks
) -> UnlikeExpected | None:
    changed, of = before != now, now.size
    both = len({*now[changed].tolist()}) > 1
    if of < _ENOUGH or not both or changed.mean() <= max(0.5, checks.stop):
        return None
    bad, expected = int((now == "bad").sum()), float((before == "bad").mean())
    return UnlikeExpected(bad, of, expected, True, int(changed.sum()))


def _known_outcomes(reader: LedgerReader, counts: HeadCounts) -> list[tuple[int, int]]:
    """Return how many outcomes are bad, of how many: in the history, and in the program.

    If most are bad in the program, they count only after a confirmation: good and bad may be
    exchanged in files that were too small to stop.
    """
    bad, good = (counts.state == STATES.index(state) for state in ("bad", "good"))
    history, (n_bad, n) = (
        (int(counts.n[rows & bad].sum()), int(counts.n[rows & (good | bad)].sum()))
        for rows in (counts.round == 0, (counts.round > 0) & (counts.override < 0))
    )
    if 2 * n_bad <= n or any(
        entry.says.get("unlike_expected", {}).get("stops")
        for entry in reader.entries(kind="outcomes")
    ):
        return [history, (n_bad, n)]
    return [history]
