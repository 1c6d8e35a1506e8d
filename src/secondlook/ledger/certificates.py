"""Certificates as facts: which came with which round, and which were dropped.

An entry of kind certificate follows the batch that was first decided by a certified rung, with the
evidence for it, and the outcomes after which certificates were dropped: a correction of what was
tested, or outcomes that speak against them.
"""

from __future__ import annotations

from typing import Any

from secondlook.certified import CertifiedClassifier
from secondlook.ledger.base import Facts, Writer
from secondlook.ledger.policies import ladder_keys

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
    if type(classifier) is not CertifiedClassifier or not getattr(classifier, "_choices", None):
        return {}
    records = classifier.rounds_[-len(classifier._choices) :]
    found = {}
    for name, choice, record in zip(
        ladder_keys(classifier), classifier._choices, records, strict=True
    ):
        if choice.certified:
            found[f"{name}:{choice.rung}"] = {
                "what": "granted",
                "ladder": name,
                "rung": choice.rung,
                "alpha": classifier.alpha,
                "delta": classifier.delta,
                **{one: getattr(record, one) for one in EVIDENCE},
            }
    return found


def record_certificates(writer: Writer, classifier: Any, by: str, *, why: str) -> None:
    """Append what certificates have come and gone; ``why`` is what told, if some have gone."""
    if type(classifier) is not CertifiedClassifier:
        return
    for key, header in granted_with(classifier).items():
        if writer.entry("certificate", key) is None:
            writer.append("certificate", header, Facts(), by=by, key=key)
    for z, engine in enumerate(classifier._engines):
        if engine.restarts:
            _record_dropped(writer, classifier, z, by, why)


def _record_dropped(
    writer: Writer, classifier: CertifiedClassifier, z: int, by: str, why: str
) -> None:
    engine = classifier._engines[z]
    key = f"dropped {z}.{engine.restarts}"
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
        and int(entry.says["ladder"].split(".")[1]) < engine.stage_began
    ]
    if lost:
        header = {
            "what": "dropped",
            "certificates": [one.key for one in lost],
            "group": lost[0].says["group"],
            "round": classifier.rounds_[-1].round,
            "why": why,
        }
        writer.append("certificate", header, Facts(), by=by, key=key)
