"""Policies and certificates as entries: enough to decide a round again without learning.

A policy is stored once, in an entry of its own before the first batch that it decides, and batches
name that entry:

``start``
    the classifier after its history, without applicants: settings, seed, f_0, how batches are read;
``past``, ``learned``
    Algorithm 1: f_0, or f_t as it was learned for the round;
``ladder``, ``rungs``
    the certified method: a frozen ranking, and which rungs of which ladders decide.

Batches of Algorithm 1 also record the chances that their draw left to others (``logged``), which
the coverage of later rounds needs. Other classifiers store no policies; they are replayed.

A certificate is an entry after the first batch that a certified rung decided, with the evidence
for it. Certificates that are dropped, after a correction of a tested outcome or after outcomes
against them, are named in another entry.
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

from fairchance.errors import InputError
from fairchance.ledger.base import Facts
from fairchance.ledger.sql import Writer
from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier
from fairchance.methods.certified.classifier import CertifiedClassifier, DeployedRung
from fairchance.methods.storage import dumps
from fairchance.people.likelihoods import PolicyFunction

__all__ = [
    "EVIDENCE",
    "START",
    "PolicyFact",
    "granted_with",
    "kept_past",
    "ladder_keys",
    "policies_of",
    "record_certificates",
    "record_policy",
    "record_start",
]

START = "start"
# Fields of a round's record that a certificate repeats.
EVIDENCE = ("share", "log_wealth", "threshold", "group", "round")
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
    """A policy as an entry: key, header, and a function that makes its payload if it has one."""

    key: str
    header: dict[str, Any]
    payload: Callable[[], bytes] | None = field(default=None, compare=False)


def kept_past(classifier: Any, past_policy: Any) -> bytes | None:
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


def record_start(writer: Writer, classifier: Any, by: str) -> None:
    """Store what deciding needs in addition to policies, for classifiers that store policies."""
    kept = _KEPT.get(type(classifier))
    if kept is None:
        return
    names = {*classifier.get_params(deep=False), *kept}
    bare = copy.copy(classifier)
    bare.__dict__ = {name: value for name, value in vars(classifier).items() if name in names}
    facts = Facts(payload=dumps(bare))
    writer.append("policy", {"what": START, "round": 0}, facts, by=by, key=START)


def record_policy(writer: Writer, classifier: Any, by: str) -> dict[str, Any]:
    """Store the policy of the last round if it is new; return what its batch records of it."""
    if type(classifier) not in _KEPT or writer.entry("policy", START) is None:
        return {}
    number = 0
    for policy in policies_of(classifier):
        entry = writer.entry("policy", policy.key)
        if entry is None:
            payload = None if policy.payload is None else policy.payload()
            header = policy.header | {"round": classifier.rounds_[-1].round}
            entry = writer.append("policy", header, Facts(payload=payload), by=by, key=policy.key)
        number = entry.number
    return {"policy": number} | _logged(classifier)


def policies_of(classifier: Any) -> list[PolicyFact]:
    """Return the policy of the last round, after the ladders that it uses."""
    if type(classifier) is CertifiedClassifier:
        return _rungs(classifier)
    deployed = classifier.deployed_
    if deployed.f.follows:
        header = {"what": "past", "follows": deployed.f.follows, "take_up": deployed.f.take_up}
        return [PolicyFact("past", header)]
    payload = dumps(deployed.f)
    key = f"learned {sha256(payload).hexdigest()}"
    return [PolicyFact(key, {"what": "learned"}, lambda: payload)]


def ladder_keys(classifier: CertifiedClassifier) -> list[str]:
    """Return the name of the ladder that decided the last round, for each engine.

    The engine, the round before which the ladder was frozen, and its number among those in use.
    """
    return [
        f"{z}.{rung.ladder.frozen}.{rung.record.ladder}"
        for z, rung in enumerate(classifier.deployed_)
    ]


def _rungs(classifier: CertifiedClassifier) -> list[PolicyFact]:
    names, deployed = ladder_keys(classifier), classifier.deployed_
    facts = [
        PolicyFact(
            f"ladder {name}",
            {"what": "ladder", "ladder": name},
            partial(dumps, rung.ladder.untested()),
        )
        for name, rung in zip(names, deployed, strict=True)
    ]
    listed = [
        {"ladder": name, "rung": rung.rung, "scale": rung.scale, "certified": rung.certified}
        for name, rung in zip(names, deployed, strict=True)
    ]
    key = " ".join(
        f"{one['ladder']}:{one['rung']}:{one['scale']:g}{'+' if one['certified'] else ''}"
        for one in listed
    )
    return [*facts, PolicyFact(f"rungs {key}", {"what": "rungs", "choices": listed})]


def _logged(classifier: Any) -> dict[str, Any]:
    """Return the scale of Algorithm 1's draw, and how many policies of its log were final."""
    if type(classifier) is CertifiedClassifier:
        return {}
    deployed = classifier.deployed_
    parts = {
        name: getattr(deployed.policy, name).tolist() for name in ("group_factor", "left", "others")
    }
    return {"logged": parts | {"final": deployed.n_final}}


def granted_with(classifier: Any) -> dict[str, dict[str, Any]]:
    """Return the certificates of the last round, by the keys of their entries.

    Examples
    --------
    >>> granted_with(CertifiedClassifier())
    {}
    """
    if type(classifier) is not CertifiedClassifier or not hasattr(classifier, "deployed_"):
        return {}
    granted = {}
    for name, rung in zip(ladder_keys(classifier), classifier.deployed_, strict=True):
        if rung.certified:
            granted[f"{name}:{rung.rung}"] = {
                "what": "granted",
                "ladder": name,
                "rung": rung.rung,
                "alpha": classifier.alpha,
                "delta": classifier.delta,
                **{key: getattr(rung.record, key) for key in EVIDENCE},
            }
    return granted


def record_certificates(writer: Writer, classifier: Any, by: str, *, after: str) -> None:
    """Append certificates that are new, and those dropped since the last call.

    ``after`` is the kind of entry that preceded; it is recorded as the reason of a drop.
    """
    if type(classifier) is not CertifiedClassifier:
        return
    for key, header in granted_with(classifier).items():
        if writer.entry("certificate", key) is None:
            writer.append("certificate", header, Facts(), by=by, key=key)
    for z, rung in enumerate(classifier.deployed_):
        if rung.restarts:
            _record_dropped(writer, z, rung, by, after)


def _record_dropped(writer: Writer, z: int, deployed: DeployedRung, by: str, after: str) -> None:
    """Append which certificates an engine dropped at its last restart, unless that is recorded."""
    key = f"dropped {z}.{deployed.restarts}"
    if writer.entry("certificate", key) is not None:
        return
    entries = list(writer.entries(kind="certificate"))
    gone = {key for entry in entries for key in entry.says.get("certificates", ())}
    lost = [
        entry
        for entry in entries
        if entry.says["what"] == "granted"
        and entry.key not in gone
        and entry.says["ladder"].startswith(f"{z}.")
        and int(entry.says["ladder"].split(".")[1]) < deployed.stage_began
    ]
    if lost:
        header = {
            "what": "dropped",
            "certificates": [entry.key for entry in lost],
            "group": lost[0].says["group"],
            "round": deployed.record.round,
            "why": after,
        }
        writer.append("certificate", header, Facts(), by=by, key=key)
