"""What decided each round, kept as data: enough to decide it again without learning.

A policy is stored once, in an entry of its own before the first batch that it decides, and batches
name that entry:

``start``
    the classifier behind its history, without people: settings, seed, f_0, how batches are read;
``past``, ``learned``
    Algorithm 1: that a round follows f_0, or f_t as it was learned then;
``ladder``, ``rungs``
    the certified method: a ranking as it was frozen, and which rungs of which ladders decide.

Batches of Algorithm 1 also say what chance their draw left for others (``logged``), on which the
coverage of later rounds rests. Classifiers of other kinds store no policies; they are replayed.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

from sklearn.base import BaseEstimator

from secondlook.errors import InputError
from secondlook.ledger.base import Facts, Writer
from secondlook.methods.algorithm1.classifier import PartialFeedbackClassifier
from secondlook.methods.certified.classifier import CertifiedClassifier
from secondlook.methods.storage import dumps
from secondlook.people.likelihoods import PolicyFunction

__all__ = [
    "START",
    "PolicyFact",
    "kept_past",
    "ladder_keys",
    "policies_of",
    "record_policy",
    "record_start",
]

START = "start"
_READING = (
    "classes_",
    "groups_",
    "n_features_in_",
    "feature_names_in_",
    "_fitted",
    "_intake",
    "_seed",
)
_KEPT: dict[type, tuple[str, ...]] = {
    PartialFeedbackClassifier: (*_READING, "_past", "_log"),
    CertifiedClassifier: _READING,
}


@dataclass(frozen=True)
class PolicyFact:
    """A policy as an entry: its key, its header, and what makes its payload if it has one."""

    key: str
    header: dict[str, Any]
    payload: Callable[[], bytes] | None = field(default=None, compare=False)


def kept_past(classifier: Any, past_policy: Any) -> bytes | None:
    """Return f_0 as it is kept with the history; None if none is given."""
    if past_policy is None:
        return None
    if "past_policy" not in inspect.signature(classifier.fit).parameters:
        raise InputError(
            f"{type(classifier).__name__} follows no past policy, got {past_policy!r}; leave "
            f"past_policy out."
        )
    if not isinstance(past_policy, BaseEstimator):
        raise InputError(
            f"past_policy must be a fitted scikit-learn classifier in a ledger, which keeps data "
            f"and no code, got {past_policy!r}; fit one to whom the past accepted, or leave "
            f"past_policy out."
        )
    return dumps(PolicyFunction(past_policy, 0))


def record_start(writer: Writer, classifier: Any, by: str) -> None:
    """Store what deciding needs beside policies; nothing for classifiers that store none."""
    kept = _KEPT.get(type(classifier))
    if kept is None:
        return
    names = {*classifier.get_params(deep=False), *kept}
    bare = copy.copy(classifier)
    bare.__dict__ = {name: one for name, one in vars(classifier).items() if name in names}
    facts = Facts(payload=dumps(bare))
    writer.append("policy", {"what": START, "round": 0}, facts, by=by, key=START)


def record_policy(writer: Writer, classifier: Any, by: str) -> dict[str, Any]:
    """Store what decided the last round, as far as it is new; return what its batch says of it."""
    if type(classifier) not in _KEPT or writer.entry("policy", START) is None:
        return {}
    number = 0
    for one in policies_of(classifier):
        entry = writer.entry("policy", one.key)
        if entry is None:
            payload = None if one.payload is None else one.payload()
            header = one.header | {"round": classifier.rounds_[-1].round}
            entry = writer.append("policy", header, Facts(payload=payload), by=by, key=one.key)
        number = entry.number
    return {"policy": number} | _logged(classifier)


def policies_of(classifier: Any) -> list[PolicyFact]:
    """Return what decided the last round: last the policy itself, before it what it is made of."""
    if type(classifier) is CertifiedClassifier:
        return _rungs(classifier)
    deployed = classifier.deployed_
    if deployed.follows_past:
        return [PolicyFact("past", {"what": "past"})]
    payload = dumps(deployed.f)
    key = f"learned {sha256(payload).hexdigest()}"
    return [PolicyFact(key, {"what": "learned"}, lambda: payload)]


def ladder_keys(classifier: CertifiedClassifier) -> list[str]:
    """Return the names of the ladders that decided the last round, one for each engine.

    The engine, the round before which the ladder was frozen, and its number among those in use.
    """
    return [
        f"{z}.{one.ladder.frozen}.{one.record.ladder}" for z, one in enumerate(classifier.deployed_)
    ]


def _rungs(classifier: CertifiedClassifier) -> list[PolicyFact]:
    names, deployed = ladder_keys(classifier), classifier.deployed_
    facts = [
        PolicyFact(
            f"ladder {name}",
            {"what": "ladder", "ladder": name},
            partial(dumps, one.ladder.untested()),
        )
        for name, one in zip(names, deployed, strict=True)
    ]
    listed = [
        {"ladder": name, "rung": one.rung, "certified": one.certified}
        for name, one in zip(names, deployed, strict=True)
    ]
    key = " ".join(
        f"{one['ladder']}:{one['rung']}{'+' if one['certified'] else ''}" for one in listed
    )
    return [*facts, PolicyFact(f"rungs {key}", {"what": "rungs", "choices": listed})]


def _logged(classifier: Any) -> dict[str, Any]:
    """Return the scale at which Algorithm 1 drew, and which policies of its log were final then."""
    if type(classifier) is CertifiedClassifier:
        return {}
    deployed = classifier.deployed_
    parts = {
        name: getattr(deployed.policy, name).tolist() for name in ("group_factor", "left", "others")
    }
    return {"logged": parts | {"final": deployed.n_final}}
