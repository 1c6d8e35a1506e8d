"""Certificates as facts: which came with which round, and which were dropped.

An entry of kind certificate follows the batch that was first decided by a certified rung, with the
evidence for it, and the outcomes after which certificates were dropped: a correction of what was
tested, or outcomes that speak against them.
"""

from __future__ import annotations

from typing import Any

from secondlook.ledger.base import Facts, Writer
from secondlook.ledger.policies import ladder_keys
from secondlook.methods.certified.classifier import CertifiedClassifier
from secondlook.methods.deployed import DeployedRung

__all__ = ["EVIDENCE", "granted_with", "record_certificates"]

# What a round says of the policy it deployed, and a certificate repeats.
EVIDENCE = ("share", "log_wealth", "threshold", "group", "round")


def granted_with(classifier: Any) -> dict[str, dict[str, Any]]:
    """Return the certificates that the last round rests on, by the keys of their entries.

    Examples
    --------
    >>> granted_with(CertifiedClassifier())
    {}
    """
    if type(classifier) is not CertifiedClassifier or not hasattr(classifier, "deployed_"):
        return {}
    found = {}
    for name, one in zip(ladder_keys(classifier), classifier.deployed_, strict=True):
        if one.certified:
            found[f"{name}:{one.rung}"] = {
                "what": "granted",
                "ladder": name,
                "rung": one.rung,
                "alpha": classifier.alpha,
                "delta": classifier.delta,
                **{key: getattr(one.record, key) for key in EVIDENCE},
            }
    return found


def record_certificates(writer: Writer, classifier: Any, by: str, *, why: str) -> None:
    """Append what certificates have come and gone; ``why`` is what told, if some have gone."""
    if type(classifier) is not CertifiedClassifier:
        return
    for key, header in granted_with(classifier).items():
        if writer.entry("certificate", key) is None:
            writer.append("certificate", header, Facts(), by=by, key=key)
    for z, one in enumerate(classifier.deployed_):
        if one.restarts:
            _record_dropped(writer, z, one, by, why)


def _record_dropped(writer: Writer, z: int, deployed: DeployedRung, by: str, why: str) -> None:
    """Append which certificates an engine dropped when it last began anew, unless that is known."""
    key = f"dropped {z}.{deployed.restarts}"
    if writer.entry("certificate", key) is not None:
        return
    entries = list(writer.entries(kind="certificate"))
    gone = {one for entry in entries for one in entry.says.get("certificates", ())}
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
            "certificates": [one.key for one in lost],
            "group": lost[0].says["group"],
            "round": deployed.record.round,
            "why": why,
        }
        writer.append("certificate", header, Facts(), by=by, key=key)
