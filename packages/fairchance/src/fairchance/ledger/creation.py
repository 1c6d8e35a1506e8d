"""The first entries of a program: its settings and its history, as facts."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

import fairchance
from fairchance.errors import InputError
from fairchance.frames import as_array, column
from fairchance.ledger.answers import first_rows, new_ids
from fairchance.ledger.base import DecisionRows, Facts, OutcomeRows, PeopleRows
from fairchance.ledger.encoding import encode_groups
from fairchance.methods.storage import dumps
from fairchance.people.columns import as_missing_values
from fairchance.people.features import FeatureColumns
from fairchance.people.ids import seed_of
from fairchance.people.intake import good_outcome
from fairchance.people.likelihoods import PolicyFunction
from fairchance.people.reasons import ReferenceApplicant

__all__ = ["first_facts", "unfitted_copy"]


def unfitted_copy(classifier: Any) -> Any:
    """Return an unfitted classifier with the same settings, if its decisions can be replayed."""
    seed = getattr(classifier, "random_state", None)
    if seed is None:
        return clone(classifier).set_params(random_state=seed_of(None))
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InputError(
            f"random_state must be None or a whole number in a ledger, got {seed!r}; leave it out."
        )
    return clone(classifier)


def first_facts(
    classifier: Any, X: Any, y: Any, given: dict[str, Any], past_policy: Any
) -> tuple[dict[str, Any], Facts, Facts]:
    """Return header and facts of the settings, and the facts of the history.

    The classifier is fitted here to see that it can learn from the history; ``given`` holds
    ``accepted``, ``sensitive_features``, ``ids`` and maybe ``not_taken`` and ``persons``, as for
    ``fit``.
    """
    settings, columns = dumps(classifier), FeatureColumns.of(X)
    encoded = columns.encode(X)
    n, groups = len(encoded), given["sensitive_features"]
    given_ids = new_ids(given["ids"], n)
    ids = np.arange(n) if given_ids is None else given_ids
    mode = getattr(classifier, "group_mode", "aware")
    names, values = None, None
    if groups is not None:
        names, values = encode_groups(groups, n, not_stated=mode != "aware")
    past = _kept_past(classifier, past_policy)
    known = {} if past_policy is None else {"past_policy": past_policy}
    same_person = first_rows(given.get("persons"), n)
    if same_person is not None:
        given = given | {"persons": same_person}
        if "persons" not in inspect.signature(classifier.fit).parameters:
            raise InputError(f"a {type(classifier).__name__} takes no persons; leave them out.")
    classifier.fit(encoded.X, y, **given, **known)
    accepted, outcomes, good, bad = _past_outcomes(classifier, y, given, n)
    header = {
        "classifier": type(classifier).__name__,
        "settings": {key: repr(value) for key, value in classifier.get_params(deep=False).items()},
        "group_mode": mode,
        "columns": asdict(columns),
        "group_names": names,
        "has_groups": values is not None,
        "id_kind": ids.dtype.kind,
        "good": good,
        "bad": bad,
        "reference": ReferenceApplicant.of(
            encoded.X,
            accepted,
            names or (getattr(groups, "name", None),),
            most_frequent=getattr(classifier, "reads_cells", False),
            missing_values=as_missing_values(getattr(classifier, "missing_values", None)),
        ).as_dict(),
        "fairchance": fairchance.__version__,
    }
    applications = list(map(str, ids.tolist()))
    keys = None if same_person is None else same_person.tolist()
    people = PeopleRows(applications, encoded.numbers, encoded.texts, values, person_keys=keys)
    unknown = np.full(n, np.nan)
    decisions = DecisionRows(0, accepted, accepted, unknown, unknown)
    return header, Facts(payload=settings), Facts(people, decisions, outcomes, payload=past)


def _past_outcomes(
    fitted: Any, y: Any, given: dict[str, Any], n: int
) -> tuple[NDArray[np.bool_], OutcomeRows | None, Any, Any]:
    """Return who was accepted in a history, the outcomes, and the labels of good and bad."""
    labels = fitted.classes_.tolist()
    if len(labels) != 2:
        raise InputError(f"a ledger needs two outcomes, got {labels}; merge some.")
    decisions = list(getattr(fitted, "decisions_", ()))
    if len(decisions) > 2:
        raise InputError(
            f"a ledger needs two decisions, got {', '.join(map(str, decisions))}; leave out some."
        )
    fitted._intake.check_good()
    good = good_outcome(labels, fitted.pos_label)
    bad = next(label for label in labels if label != good)
    accepted = np.ones(n, np.bool_)
    if given["accepted"] is not None:
        accepted = column(given["accepted"], n, "accepted").astype(np.bool_)
    rows = np.flatnonzero(accepted)
    if not rows.size:
        return accepted, None, good, bad
    states = np.where(as_array(y).reshape(n)[rows] == good, "good", "bad").astype(np.object_)
    if "not_taken" in given:
        states[column(given["not_taken"], n, "not_taken").astype(np.bool_)[rows]] = "not_taken"
    return accepted, OutcomeRows(rows, states.tolist()), good, bad


def _kept_past(classifier: Any, past_policy: Any) -> bytes | None:
    """Return f_0 as it is stored with the history; None if none is given."""
    if past_policy is None:
        return None
    if "past_policy" not in inspect.signature(classifier.fit).parameters:
        raise InputError(
            f"{type(classifier).__name__} follows no past policy, got {past_policy!r}; leave "
            f"past_policy out."
        )
    if not isinstance(past_policy, BaseEstimator):
        raise InputError(
            f"past_policy must be a fitted scikit-learn classifier in a ledger, got "
            f"{past_policy!r}; fit one to past decisions."
        )
    return dumps(PolicyFunction(past_policy, 0))
