"""The evidence of certificates by accepted applicants, so that plain sums give it again.

The ledger stores who was accepted with which probability, and the outcomes. Which bets were made on
a round follows from everything before it, so a program is replayed, as ``verify`` does when it
learns again. Replaying ends at the first entry with erased applicants, or that cannot be repeated;
of a certificate after it there is only a row that says why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import LedgerError
from fairchance.extras import arrow
from fairchance.ledger.base import Entry
from fairchance.ledger.replay import CLOSE, Allowed, State
from fairchance.ledger.sql import LedgerReader
from fairchance.ledger.verification.proofs import describe
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.certified.engine import Engine
from fairchance.methods.certified.evidence import RATIO_CAPS, Dependence
from fairchance.methods.certified.ladder import Ladder
from fairchance.methods.certified.rounds import LadderBets, WaitingRound
from fairchance.people.store import NOT_TAKEN

__all__ = ["Trail", "read_trail"]

Floats = NDArray[np.float64]
Columns = dict[str, Any]

_APPLIED = ("history", "round", "batch", "import", "outcomes", "correction", "override", "control")
_CAPS = tuple(f"{cap:g}" for cap in RATIO_CAPS)


@dataclass
class Trail:
    """The tests behind all certificates of a program, as three tables.

    A certificate rests on every rung of its walk, from ``walk_from`` to ``rung``: each of them
    needs an evidence of −ln of ``delta_part``. A rung's evidence is the largest, over rounds, of
    the logarithm of the mean wealth of its gamblers. The log wealth of a gambler is the sum of
    ln(1 + bet·Z) over applicants and of ``others`` over rounds, what all others of the round add:
    they were rejected, so no outcome changes it.

    Attributes
    ----------
    certificates
        A row for each certificate; ``not_recomputed`` says why its tests are not among the others.
    bets
        A row for each ladder, round and rung: what the gamblers with the caps 4 and 8 on w
        (``methods.certified.evidence``) bet, what all others of the round add to their log wealth,
        and the evidence after the round. A rung without a row had no bet in the round.
    chances
        A row for each ladder and accepted applicant, with the logged chance and that of each rung.
        Applications of one ``person`` in a round are one: their Z are summed. None if there would
        be too many rows.
    """

    certificates: Any = None
    bets: Any = None
    chances: Any = None


@dataclass(frozen=True, eq=False)
class _Test:
    """A round that was tested on a ladder, and the entry with which that happened."""

    entry: int
    waiting: WaitingRound
    bets: LadderBets
    depend: Dependence
    counted: NDArray[np.bool_]
    bad: Floats

    def shares(self, rungs: slice) -> Floats:
        """Return what the gamblers bet, by cap, bet and rung."""
        bounds = self.waiting.policy.ratio_bounds(self.bets.ladder)
        shares = self.bets.ladder.bets(bounds, self.bets.use, self.depend)
        return np.asarray(shares[0][:, :, rungs])

    def others(self, rungs: slice) -> Floats:
        """Return what all others of the round add to log wealth, by cap, bet and rung."""
        assert self.bets.others is not None
        return np.asarray(self.bets.others[0][:, :, rungs])

    def growth(self, rungs: slice) -> Floats:
        """Return what the round adds to log wealth, by cap, bet and rung."""
        assert self.bets.positions is not None
        ladder, waiting = self.bets.ladder, self.waiting
        growth = ladder.growth(
            self.bets.positions,
            waiting.p,
            self.counted,
            self.bad,
            waiting.policy.ratio_bounds(ladder),
            self.bets.use,
            self.depend,
        )
        return np.asarray(growth[0][:, :, rungs] + self.others(rungs))


@dataclass(eq=False)
class _Shown:
    """What of a ladder is shown: rungs from the first of a walk to the widest that is certified."""

    ladder: Ladder
    tests: list[_Test]
    first: int
    last: int

    @property
    def rungs(self) -> slice:
        return slice(self.first, self.last + 1)

    def evidence(self) -> Iterator[Floats]:
        """Yield the evidence of each rung after each round."""
        log: Floats | float = 0.0
        for test in self.tests:
            log = log + test.growth(self.rungs)
            gamblers = log.reshape(-1, log.shape[-1])
            yield np.logaddexp.reduce(gamblers, axis=0) - np.log(len(gamblers))


def read_trail(reader: LedgerReader, allowed: Allowed, most: int) -> Trail:
    """Return the tests behind all certificates, with at most so many rows of chances.

    Without any certificate all tables are None.
    """
    shown: dict[str, _Shown] = {}
    granted = (entry.says["what"] == "granted" for entry in reader.entries(kind="certificate"))
    rows = [*_certificates(reader, allowed, shown)] if any(granted) else []
    names = dict.fromkeys(name for row in rows for name in row)
    certificates = {name: [row.get(name) for row in rows] for name in names}
    n = sum(int(test.counted.sum()) for one in shown.values() for test in one.tests)
    return Trail(
        _joined([certificates] if rows else []),
        _joined([_bet_rows(name, one) for name, one in shown.items()]),
        _joined(
            [_chance_rows(name, one, test) for name, one in shown.items() for test in one.tests]
            if n <= most
            else []
        ),
    )


def _joined(parts: list[Columns]) -> Any:
    """Return rows as one table, in which a column that a part lacks is empty; None without any."""
    pa = arrow()
    if not parts:
        return None
    return pa.concat_tables([pa.table(part) for part in parts], promote_options="default")


def _certificates(
    reader: LedgerReader, allowed: Allowed, shown: dict[str, _Shown]
) -> Iterator[dict[str, Any]]:
    """Replay a program; yield a row for each certificate, and note what to show of ladders."""
    state, batch, why_not = None, 0, ""
    tests: dict[int, list[_Test]] = defaultdict(list)  # by the id of the ladder
    for entry in reader.entries():
        if entry.kind == "program":
            state = State.first(entry, reader.facts(entry), allowed)
        elif entry.kind == "certificate" and entry.says["what"] == "granted" and state is not None:
            if why_not:
                yield _about(entry) | {"not_recomputed": why_not}
            else:
                yield _recomputed(entry, state, tests, batch, shown)
        elif entry.kind in _APPLIED and state is not None and not why_not:
            people = entry.people_range
            if len(people) and reader.erased_between(people.start, people.stop):
                why_not = f"an applicant of {describe(entry)} was erased, and tests rest on all"
                continue
            if entry.kind == "round" or (entry.kind == "batch" and "opened" not in entry.says):
                batch = entry.number  # the policy was chosen with it
            try:
                applied = _applied(state, reader, entry)
            except LedgerError:  # a changed record, which ``verify`` names
                why_not = f"{describe(entry)} cannot be repeated; verify the ledger"
                continue
            for test in applied:
                tests[id(test.bets.ladder)].append(test)


def _about(entry: Entry) -> dict[str, Any]:
    """Return what names a certificate."""
    group = entry.says["group"]
    return {
        "certificate": entry.key,
        "group": ", ".join(map(str, group)) if isinstance(group, list) else group,
        "ladder": entry.says["ladder"],
        "rung": entry.says["rung"],
        "share": entry.says["share"],
    }


def _recomputed(
    entry: Entry,
    state: State,
    tests: dict[int, list[_Test]],
    batch: int,
    shown: dict[str, _Shown],
) -> dict[str, Any]:
    """Return the row of a certificate, if its evidence equals the record."""
    about, name, rung = _about(entry), entry.says["ladder"], entry.says["rung"]
    ladder = state.classifier.deployed_[int(name.split(".")[0])].ladder
    if ladder.from_history:
        return about | {"not_recomputed": "the history was tested, too, and is not among the rows"}
    known = [test for test in tests[id(ladder)] if test.entry < batch]
    # The walk with the larger part of the ladder's level needs less.
    for start, share in sorted(ladder.starts, key=lambda walk: -walk[1]):
        if start > rung:
            continue
        walk = _Shown(ladder, known, start, rung)
        best = np.max([*walk.evidence()], axis=0, initial=0.0)
        needed = -np.log(ladder.level * share)
        if not np.isclose(best[-1], entry.says["log_wealth"], CLOSE, CLOSE):
            break
        if np.all(best >= needed):
            before = shown.get(name, walk)
            ends = min(before.first, start), max(before.last, rung)
            shown[name] = _Shown(ladder, known, *ends)
            return about | {
                "walk_from": start,
                "alpha": ladder.alpha,
                "shock": ladder.shock,
                "delta_part": ladder.level * share,
                "through_round": known[-1].waiting.number,
                "evidence": float(best[-1]),
            }
    return about | {"not_recomputed": "its evidence is not the recorded one"}


def _applied(state: State, reader: LedgerReader, entry: Entry) -> list[_Test]:
    """Apply an entry; return the tests of rounds that it completed."""
    engines: list[Engine] = getattr(state.classifier, "_engines", [])
    before = [list(engine.waiting) for engine in engines]
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
            depend = Dependence(one.persons, engine.rules.per_person, engine.rules.shock)
            bets = [bet for bet in one.bets if bet.positions]
            found += [_Test(entry.number, one, bet, depend, counted, bad) for bet in bets]
    return found


def _bet_rows(name: str, shown: _Shown) -> Columns:
    """Return the bets on each round and rung of a ladder."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for test, evidence in zip(shown.tests, shown.evidence(), strict=True):
        shares, others = test.shares(shown.rungs), test.others(shown.rungs)
        bet_on = np.flatnonzero(shares.any(axis=(0, 1)))
        columns["ladder"] += [name] * bet_on.size
        columns["round"] += [test.waiting.number] * bet_on.size
        columns["rung"] += (bet_on + shown.first).tolist()
        for what, values_of in (("bet", shares), ("others", others)):
            for cap, of_cap in zip(_CAPS, values_of, strict=True):
                for at, row in enumerate(of_cap, 1):
                    columns[f"{what}{cap}_{at}"] += row[bet_on].tolist()
        columns["evidence"] += evidence[bet_on].tolist()
    return columns


def _chance_rows(name: str, shown: _Shown, test: _Test) -> Columns:
    """Return the applicants of a round, whose Z is not 0, with their chances under each rung."""
    assert test.bets.positions is not None
    chances = np.asarray(shown.ladder.policies(test.bets.positions, shown.rungs))
    # A rejected applicant counts where the policy is not covered: here one who has applied twice.
    uncovered = (chances > RATIO_CAPS[0] * test.waiting.p[:, None]).any(axis=1)
    rows = np.flatnonzero(test.counted | uncovered)
    ids = np.full(test.counted.size, None, object)
    ids[test.waiting.accepted] = np.asarray(test.waiting.ids).astype(np.str_)
    columns: Columns = {"ladder": [name] * rows.size, "round": [test.waiting.number] * rows.size}
    columns |= {"id": ids[rows], "accepted": test.counted[rows], "bad": test.bad[rows]}
    if test.depend.persons is not None:
        columns["person"] = np.unique(test.depend.persons, return_inverse=True)[1][rows]
    columns["logged_chance"] = test.waiting.p[rows]
    of_rungs = enumerate(chances[rows].T, shown.first)
    return columns | {f"chance_{rung}": of_all for rung, of_all in of_rungs}
