"""Policies and certificates on the record.

A policy (``methods.policy``) is the payload of the entry that opens its round, or of the batch if
that was decided at once: enough to decide the round again on any machine, without learning. Rounds
on the same ranking have most of a policy in common, so an entry may store only what differs from an
earlier one, its ``base``. Classifiers that open no rounds store no policies; they are replayed.

A certificate is an entry after the first batch that a certified rung decided, with the evidence
for it. Certificates that are dropped, after a correction of a tested outcome or after outcomes
against them, are named in another entry.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from fairchance.core.sizes import unzipped
from fairchance.errors import LedgerError
from fairchance.ledger.base import Entry, Facts
from fairchance.ledger.replay import Allowed
from fairchance.ledger.sql import LedgerReader, Writer
from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier
from fairchance.methods.certified.classifier import CertifiedClassifier, DeployedRung
from fairchance.methods.policy import Policy
from fairchance.methods.storage import dumps, loads

__all__ = ["EVIDENCE", "granted_with", "ladder_keys", "pack_policy", "policy_content"]
__all__ += ["read_policy", "record_certificates", "stores_policies"]

# Fields of a round's record that a certificate repeats.
EVIDENCE = ("share", "log_wealth", "threshold", "group", "round")
_SHARED = "shared.json"  # which files of a policy are those of another, by name
_WORTH = 500  # bytes of a file that is not stored again


def stores_policies(classifier: Any) -> bool:
    """Return whether the rounds of a classifier are proved by their policies."""
    return type(classifier) in (CertifiedClassifier, PartialFeedbackClassifier)


def pack_policy(reader: LedgerReader, policy: Policy) -> tuple[dict[str, Any], bytes]:
    """Return what an entry says of its policy, and its payload: all of it, or what is new."""
    content = dumps(policy)
    newest = [next(reader.newest_first(kind), None) for kind in ("round", "batch")]
    # The entry that closes a round has no policy.
    known = [one for one in newest if one is not None and "policy" in one.says]
    last = max(known, key=lambda one: one.number, default=None)
    if last is not None:
        base = last.says["policy"]["base"] or last.number
        other = reader.payload(base)
        new = None if other is None else _without(content, other)
        if new is not None and len(new) < len(content) / 2:
            return {"policy": {"base": base}}, new
    return {"policy": {"base": None}}, content


def policy_content(reader: LedgerReader, entry: Entry) -> bytes:
    """Return the policy of an entry as ``storage.dumps`` wrote it, but for compression."""
    base = entry.says["policy"]["base"]
    parts = [reader.payload(number) for number in (entry.number, base) if number is not None]
    if None in parts:
        raise LedgerError(f"the policy of entry {entry.number} is missing; verify the ledger.")
    own, *other = parts
    return _together(own, other[0]) if other else own  # type: ignore[arg-type, return-value]


def read_policy(reader: LedgerReader, entry: Entry, allowed: Allowed) -> Policy:
    """Return the policy that an entry stores."""
    policy: Policy = loads(
        policy_content(reader, entry),
        types=allowed.types,
        trusted=allowed.trusted,
        name=f"the policy stored in entry {entry.number}",
        holds=Policy,
    )
    return policy


def _without(content: bytes, other: bytes) -> bytes:
    """Return content without the files that other content has."""
    files = unzipped(content, "a policy")
    name_of = {file: name for name, file in unzipped(other, "a policy").items()}
    shared = {
        name: name_of[file]
        for name, file in files.items()
        if len(file) >= _WORTH and file in name_of
    }
    own = {name: file for name, file in files.items() if name not in shared}
    return _zip({_SHARED: json.dumps(shared).encode(), **own}, zipfile.ZIP_DEFLATED)


def _together(content: bytes, other: bytes) -> bytes:
    """Return the content from which ``_without`` took the files of other content."""
    files, others = unzipped(content, "a policy"), unzipped(other, "a policy")
    shared = json.loads(files.pop(_SHARED))
    return _zip(files | {name: others[of] for name, of in shared.items()}, zipfile.ZIP_STORED)


def _zip(files: dict[str, bytes], compression: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, file in files.items():
            undated = zipfile.ZipInfo(name)  # so that the bytes do not depend on the time
            undated.compress_type = compression
            archive.writestr(undated, file)
    return buffer.getvalue()


def ladder_keys(classifier: CertifiedClassifier) -> list[str]:
    """Return the name of the ladder that decided the last round, for each engine.

    The engine, the round before which the ladder was frozen, and its number among those in use.
    """
    return [
        f"{z}.{rung.ladder.frozen}.{rung.record.ladder}"
        for z, rung in enumerate(classifier.deployed_)
    ]


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
