"""The decisions of a program as a ``DecisionLog``, on which an audit asks its questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.audit.log import DecisionLog
from fairchance.core.decisions import CertifiedRound, Round
from fairchance.errors import InputError
from fairchance.frames import concat
from fairchance.ledger.base import Bools, Entry, Floats, ListedRows
from fairchance.ledger.encoding import Shape
from fairchance.ledger.records import AnyRound, read_rounds
from fairchance.ledger.replay import erased_rows
from fairchance.ledger.sql import LedgerReader
from fairchance.methods.certified.classifier import CertifiedClassifier

__all__ = ["decision_log_of", "flips_coins"]

_ROWS = 20_000  # applicants read at a time
_GOOD = {"good": 1.0, "bad": 0.0, "withdrawn": np.nan, "not_taken": np.nan, None: np.nan}


def decision_log_of(
    reader: LedgerReader,
    settings: Entry,
    *,
    history: bool = False,
    groups: bool = True,
    features: bool = True,
    mean_acceptance: Callable[..., Floats] | None = None,
) -> DecisionLog:
    """Return decisions, with what is known of their outcomes by now.

    ``history`` returns the decisions before the first batch instead of all later ones. With a
    classifier's method ``mean_acceptance``, the log has each applicant's mean probability.
    """
    shape, classifier = Shape.read(settings.says), settings.says["classifier"]
    has_groups = shape.has_groups and (groups or mean_acceptance is not None)
    columns, shocks = _Columns(shape, has_groups, has_features=features), [0.0]
    records_of: dict[int, tuple[AnyRound, ...]] = {}
    for entry in reader.entries():
        # An import has decisions that came after their round.
        if entry.kind not in (("history",) if history else ("batch", "import")):
            continue
        if entry.kind == "batch":
            records_of[entry.says["round"]] = read_rounds(entry)
        records = records_of.get(entry.says.get("round", 0), ())
        coins = history or flips_coins(classifier, entry)
        columns.read(reader, entry, coins=coins, ranking=0 if history else _ranking(entry, records))
        shocks += [one.shock for one in records if isinstance(one, CertifiedRound)]
    if not columns.parts:
        raise InputError("the program has decided no batch, so there is no log; decide one.")
    X = concat(columns.features) if columns.features else None
    # A ledger has neither scores nor probabilities of a history.
    instead: dict[str, Any] = {"propensity": None, "score": None} if history else {}
    if mean_acceptance is not None:
        instead["mixture"] = columns.mixture(mean_acceptance, X)
    return columns.log(X, groups=groups, shock=max(shocks), **instead)


@dataclass
class _Columns:
    """The columns of a log, in the parts in which they are read."""

    shape: Shape
    has_groups: bool
    has_features: bool
    parts: list[dict[str, NDArray[Any]]] = field(default_factory=list)
    features: list[Any] = field(default_factory=list)  # without erased applicants
    groups: list[str | None] = field(default_factory=list)
    rankings: dict[Any, int] = field(default_factory=dict)

    def read(self, reader: LedgerReader, entry: Entry, *, coins: bool, ranking: Any) -> None:
        """Read the applicants of an entry, whom independent coins decided or a draw."""
        number = self.rankings.setdefault(ranking, len(self.rankings))
        people = entry.people_range
        for start in range(people.start, people.stop, _ROWS):
            end = min(start + _ROWS, people.stop)
            rows = reader.listed(start, end, groups=self.has_groups)
            exploit, erased = rows.decisions.exploit, erased_rows(rows.people)
            drawn = np.zeros_like(exploit) if coins else ~exploit
            known = {"drawn": drawn, "erased": erased, "ranking": np.full(erased.size, number)}
            self.parts.append(_decided(rows) | known)
            there = np.flatnonzero(~erased & self.has_features).tolist()
            if there:
                numbers, texts = rows.people.numbers, rows.people.texts
                self.features.append(
                    self.shape.features([numbers[at] for at in there], [texts[at] for at in there])
                )
            self.groups += rows.people.groups or ()

    def log(self, X: Any, *, groups: bool, **instead: Any) -> DecisionLog:
        """Return the log, with other values of some columns; X has no erased applicants."""
        columns = {name: self._whole(name) for name in self.parts[0]}
        return DecisionLog(
            X=None if X is None else _placed(X, columns["erased"]),
            sensitive_features=self.shape.groups(self.groups) if groups else None,
            **(columns | instead),
        )

    def mixture(self, mean_acceptance: Callable[..., Floats], X: Any) -> Floats:
        """Return each applicant's mean probability of acceptance; X has no erased applicants."""
        round, p, erased = (self._whole(name) for name in ("round", "propensity", "erased"))
        mean = p.copy()  # of the erased, nothing else is known
        if X is not None:
            groups = self.shape.groups([value for value in self.groups if value is not None])
            mean[~erased] = mean_acceptance(X, sensitive_features=groups)
        # The part of the applicant's own round is known exactly; a policy that is asked again may
        # round a score that is on its threshold the other way.
        _, code, sizes = np.unique(round, return_inverse=True, return_counts=True)
        return np.asarray(np.maximum(mean, p * sizes[code] / p.size))

    def _whole(self, name: str) -> Any:
        return np.concatenate([part[name] for part in self.parts])


def _decided(rows: ListedRows) -> dict[str, NDArray[Any]]:
    """Return the decisions, and the outcomes that belong to them."""
    decided = rows.decisions
    states = [newest and newest[0] for newest in rows.outcomes]
    outcome = np.array([_GOOD[state] for state in states])
    not_taken = np.array([state == "not_taken" for state in states])
    withdrawn = np.array([state is not None for state in states]) & np.isnan(outcome) & ~not_taken
    # The end of an override repeats the program's decision, so it replaces nothing. An outcome
    # that follows another decision than the program's says nothing about the program's.
    by_hand = zip(rows.overrides, decided.accepted.tolist(), strict=True)
    replaced = np.array([newest is not None and newest[0] != own for newest, own in by_hand])
    outcome[replaced] = np.nan
    d = np.full(outcome.size, np.nan) if decided.incumbent is None else decided.incumbent
    return {
        "accepted": decided.accepted,
        "propensity": decided.propensity,
        "outcome": outcome,
        "withdrawn": withdrawn & ~replaced,
        "not_taken": not_taken & ~replaced,
        "exploit": decided.exploit,
        "incumbent": d.astype(np.float64),
        "overridden": replaced & decided.accepted,
        "score": decided.score,
        "round": np.full(outcome.size, decided.round),
    }


def flips_coins(classifier: str, batch: Entry) -> bool:
    """Return whether a coin of their own decided on each applicant of a batch.

    ``CertifiedClassifier`` flips coins, and the record of a round of Algorithm 1 says it.
    Candidates of a draw who were certain belong to it too: who is certain depends on the rest of
    the batch. Nothing is known of other classifiers, and a draw is the cautious answer.
    """
    if classifier == CertifiedClassifier.__name__ or batch.kind == "import":
        return True  # only rounds of coins are decided elsewhere
    return any(isinstance(record, Round) and record.coins for record in read_rounds(batch))


def _ranking(batch: Entry, records: Iterable[AnyRound]) -> Any:
    """Return what tells the ranking of a batch from others: its ladders or its round.

    The certified method keeps a frozen ranking over rounds; Algorithm 1 learns one for each.
    """
    ladders = [  # numbers of ladders may begin again with tests
        (one.group, one.tests_began, one.ladder)
        for one in records
        if isinstance(one, CertifiedRound)
    ]
    return str(ladders or batch.says["round"])


def _placed(X: Any, erased: Bools) -> Any:
    """Return the features of all applicants, with missing values for the erased."""
    if not erased.any():
        return X
    if isinstance(X, np.ndarray):
        placed = np.full((erased.size, X.shape[1]), np.nan, X.dtype)
        placed[~erased] = X
        return placed
    import pyarrow as pa  # noqa: PLC0415 - an extra

    return X.take(pa.array(np.cumsum(~erased) - 1, mask=erased))
