"""The evidence of certificates, applicant by applicant, so that plain sums give it again.

The ledger stores who was accepted with which probability, and the outcomes. Which bets were made on
a round follows from everything before it, so a program is replayed, as ``verify`` does when it
learns again. Replaying ends at the first entry with erased applicants, or that cannot be repeated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import LedgerError
from fairchance.ledger.base import Entry
from fairchance.ledger.replay import CLOSE, Allowed, State, erased_rows
from fairchance.ledger.sql import Reader
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.certified.engine import Engine
from fairchance.methods.certified.evidence import RATIO_CAPS, values
from fairchance.methods.certified.ladder import Ladder
from fairchance.methods.certified.rounds import LadderBets, WaitingRound
from fairchance.people.store import NOT_TAKEN

__all__ = ["certificate_columns"]

_APPLIED = ("history", "round", "batch", "import", "outcomes", "correction", "override", "control")
_CAPS = tuple(f"{cap:g}" for cap in RATIO_CAPS)


def certificate_columns(reader: Reader, allowed: Allowed) -> dict[str, list[Any]]:
    """Return a row for each certificate and each applicant of its tests; empty without any.

    ``z4`` and ``z8`` are Z with the caps 4 and 8 on w (``methods.certified.evidence``), and
    ``bet4_1`` to ``bet8_4`` what the eight gamblers bet on it. The sum of ln(1 + bet·z) over
    applicants, less ½·(bet·mass·shock)² for each round, is a gambler's log wealth; with shocks
    there are more gamblers, who bet less. ``evidence`` is the logarithm of their mean wealth after
    the round; a certificate has the largest so far. It needs −ln of ``delta_part``.
    """
    columns: dict[str, list[Any]] = defaultdict(list)
    if any(entry.says["what"] == "granted" for entry in reader.entries(kind="certificate")):
        for rows in _certificates(reader, allowed):
            for name, some in rows.items():
                columns[name] += some
    return columns


@dataclass(frozen=True, eq=False)
class _Test:
    """A round that was tested on a ladder, and the entry with which that happened."""

    entry: int
    waiting: WaitingRound
    bets: LadderBets
    counted: NDArray[np.bool_]
    bad: NDArray[np.float64]


def _certificates(reader: Reader, allowed: Allowed) -> Iterator[dict[str, list[Any]]]:
    """Replay a program; yield the rows of each certificate with evidence that equals the record."""
    state, batch = None, 0
    tests: dict[int, list[_Test]] = defaultdict(list)  # by the id of the ladder
    for entry in reader.entries():
        if entry.kind == "program":
            state = State.first(entry, reader.facts(entry), allowed)
        elif entry.kind == "certificate" and entry.says["what"] == "granted" and state is not None:
            z = int(entry.says["ladder"].split(".")[0])
            ladder = state.classifier.deployed_[z].ladder
            known = [test for test in tests[id(ladder)] if test.entry < batch]
            rows, evidence = _rows(entry, ladder, known)
            if np.isclose(evidence, entry.says["log_wealth"], CLOSE, CLOSE):
                yield rows
        elif entry.kind in _APPLIED and state is not None:
            people = reader.facts(entry).people
            if people is not None and erased_rows(people).any():
                return
            if entry.kind == "round" or (entry.kind == "batch" and "opened" not in entry.says):
                batch = entry.number  # the policy was chosen with it
            try:
                applied = _applied(state, reader, entry)
            except LedgerError:  # a changed record, which ``verify`` names
                return
            for test in applied:
                tests[id(test.bets.ladder)].append(test)


def _applied(state: State, reader: Reader, entry: Entry) -> list[_Test]:
    """Apply an entry; return the tests of rounds that it completed."""
    engines: list[Engine] = getattr(state.classifier, "_engines", [])
    before = [list(engine.waiting) for engine in engines]
    for engine in engines:
        engine.keeps_rejected = True  # a plain sum needs each of them
    state.apply(reader, entry)
    assert isinstance(state.classifier, CertifiedClassifier)
    found = []
    for engine, waiting in zip(engines, before, strict=True):
        for one in waiting:
            if one in engine.waiting:
                continue
            outcome = engine.rows["outcome"][one.rows]
            counted, bad = one.accepted.copy(), np.zeros(one.accepted.size)
            counted[one.accepted] = outcome != NOT_TAKEN
            bad[one.accepted] = engine.rules.noise.badness(outcome != 1)
            bets = [bet for bet in one.bets if bet.positions]
            found += [_Test(entry.number, one, bet, counted, bad) for bet in bets]
    return found


def _rows(entry: Entry, ladder: Ladder, tests: list[_Test]) -> tuple[dict[str, list[Any]], float]:
    """Return the rows of a certificate, and its evidence."""
    says, rung = entry.says, entry.says["rung"]
    group = says["group"]
    about = {
        "certificate": entry.key,
        "group": ", ".join(map(str, group)) if isinstance(group, list) else group,
        "share": says["share"],
        "alpha": ladder.alpha,
        "shock": ladder.shock,
        "delta_part": float(np.exp(-ladder.threshold(rung))),
    }
    columns: dict[str, list[Any]] = defaultdict(list)
    n_bets, share = (
        len(ladder.wealth.bets),
        float(np.broadcast_to(ladder.mass, ladder.grid.shape)[rung]),
    )
    log, best = np.zeros((len(RATIO_CAPS), n_bets)), 0.0
    for test in tests:
        waiting, policy = test.waiting, test.waiting.policy
        bets = ladder.wealth.shares(policy.ratio_bounds(ladder))[:, :, rung]
        bets = bets * test.bets.use[0, :, rung, None]
        if not bets.any():
            continue
        assert test.bets.positions is not None
        pi, p, accepted = ladder.policy(test.bets.positions, rung), waiting.p, test.counted
        z = np.array(
            [
                values(pi[:, None], p, accepted, test.bad, ladder.alpha, cap)[:, 0]
                for cap in RATIO_CAPS
            ]
        )
        mass = waiting.n_people * share
        log += np.log1p(bets[:, :, None] * z[:, None]).sum(axis=2)
        log -= 0.5 * (bets * mass * ladder.shock) ** 2
        evidence = float(np.logaddexp.reduce(log, axis=None) - np.log(log.size))
        best = max(best, evidence)
        rows = np.flatnonzero(accepted | z.any(axis=0))
        ids = np.full(accepted.size, None, object)
        ids[waiting.accepted] = waiting.ids  # also of loans that were not taken
        own = {"id": ids, "accepted": accepted, "bad": test.bad, "logged_chance": p, "chance": pi}
        own |= {f"z{cap}": of_cap for cap, of_cap in zip(_CAPS, z, strict=True)}
        for name, values_of in own.items():
            columns[name] += values_of[rows].tolist()
        same = about | {"round": waiting.number, "mass": mass, "evidence": evidence}
        for cap, of_cap in zip(_CAPS, bets, strict=True):
            same |= {f"bet{cap}_{at}": float(bet) for at, bet in enumerate(of_cap, 1)}
        for name, value in same.items():
            columns[name] += [value] * rows.size
    order = (*about, "round", "mass", "id", "accepted", "bad", "logged_chance", "chance")
    order += tuple(f"z{cap}" for cap in _CAPS)
    order += tuple(f"bet{cap}_{at}" for cap in _CAPS for at in range(1, n_bets + 1))
    return {name: columns[name] for name in (*order, "evidence")}, best
