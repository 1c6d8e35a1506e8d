"""The first facts of a program: its settings, and the history as it was handed in."""

from __future__ import annotations

import getpass
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from secondlook.ledger.base import DecisionRows, Facts, PeopleRows
from secondlook.ledger.columns import Columns, encode_groups
from secondlook.ledger.policies import kept_past
from secondlook.ledger.telling import new_ids, past_outcomes
from secondlook.methods.storage import dumps
from secondlook.people.reference import Reference

__all__ = ["Start", "first_facts", "who_writes"]


@dataclass(frozen=True)
class Start:
    """What the first two entries of a program say."""

    header: dict[str, Any]
    settings: Facts
    history: Facts


def first_facts(
    classifier: Any, fresh: Any, X: Any, y: Any, history: dict[str, Any], past_policy: Any
) -> Start:
    """Return a program's settings and its history, after a classifier has learned from it.

    Parameters
    ----------
    classifier
        As the caller has it.
    fresh
        A copy that knows nothing yet, and is fitted here to see that the history can be learned.
    X, y
        Features and outcomes of the history.
    history
        ``accepted``, ``sensitive_features`` and ``ids``, as for ``fit``.
    past_policy
        f_0, if it is known.
    """
    settings, columns = dumps(fresh), Columns.of(X)
    kept = columns.encode(X)
    n, ids, groups = len(kept), history["ids"], history["sensitive_features"]
    given_ids = new_ids(ids, n)
    applications = np.arange(n) if given_ids is None else given_ids
    names, values = (None, None) if groups is None else encode_groups(groups, n)
    given = {} if past_policy is None else {"past_policy": past_policy}
    past = kept_past(fresh, past_policy)
    fresh.fit(kept.X, y, **history, **given)
    taken, outcomes, good, bad = past_outcomes(fresh, y, history["accepted"], n)
    header = {
        "classifier": type(classifier).__name__,
        "settings": {key: repr(one) for key, one in classifier.get_params(deep=False).items()},
        "group_mode": getattr(classifier, "group_mode", "aware"),
        "columns": asdict(columns),
        "group_names": names,
        "has_groups": values is not None,
        "people_by": "id",
        "id_kind": applications.dtype.kind,
        "good": good,
        "bad": bad,
        "reference": Reference.of(
            kept.X,
            taken,
            names or (getattr(groups, "name", None),),
            most_frequent=getattr(fresh, "reads_cells", False),
        ).as_dict(),
        "secondlook": version("secondlook"),
    }
    people = PeopleRows(
        [str(one) for one in applications.tolist()], kept.numbers, kept.texts, values
    )
    unknown = np.full(n, np.nan)
    decided = DecisionRows(0, taken, taken, unknown, unknown)
    return Start(header, Facts(payload=settings), Facts(people, decided, outcomes, payload=past))


def who_writes(by: str | None) -> str:
    """Return who is said to write: whom a caller names, or else the user's login name."""
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
