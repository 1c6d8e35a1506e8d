"""Outcomes are compared with the record, and learned as the record teaches them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fairchance.errors import InputError
from fairchance.ledger.base import STATES, HeadCounts, Standing
from fairchance.ledger.outcomes import compare_outcomes, new_outcomes, unique_outcomes
from fairchance.ledger.program import Program
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.storage import dumps
from fairchance.people.likeness import Checks
from ledger_worlds import algorithm_1, certified, started


def one_by_one(now, standing, final):
    """Return the new outcomes, by a loop over applicants."""
    new = {"outcomes": [], "correction": []}
    for at, (name, before) in enumerate(zip(now, standing.states, strict=True)):
        if before is None:
            new["outcomes"].append(at)
        elif before != now[name]:
            if final and "withdrawn" in (before, now[name]):
                return name
            new["correction"].append(at)
    return {
        kind: sorted(rows, key=lambda at: standing.persons[at])
        for kind, rows in new.items()
        if rows
    }


def test_new_outcomes_are_those_that_the_record_lacks(rng):
    kinds = set()
    for turn in range(200):
        n = int(rng.integers(8))
        now = {str(at): STATES[code] for at, code in enumerate(rng.integers(3, size=n))}
        before = [[*STATES, None][code] for code in rng.integers(4, size=n)]
        all_, none = np.ones(n, bool), np.zeros(n, bool)
        standing = Standing(
            rng.permutation(n), np.ones(n, int), all_, none, before, all_, np.ones(n)
        )
        final = bool(turn % 2)
        expected = one_by_one(now, standing, final)
        kinds.add(type(expected))
        if isinstance(expected, str):
            with pytest.raises(InputError, match=f"'{expected}'"):
                new_outcomes(now, standing, final=final)
            continue
        new = dict(new_outcomes(now, standing, final=final))
        assert {kind: rows.tolist() for kind, rows in new.items()} == expected
    assert kinds == {dict, str}


def test_repeated_outcomes_must_agree():
    assert unique_outcomes(["b", "a", "b"], ["good", "bad", "good"]) == {"b": "good", "a": "bad"}
    assert list(unique_outcomes(["b", "a", "b"], ["good", "bad", "good"])) == ["b", "a"]
    with pytest.raises(InputError, match="'b'"):
        unique_outcomes(["a", "b", "b", "a"], ["good", "good", "bad", "bad"])


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_learning_from_calls_equals_learning_from_the_record(url, make, rng):
    program, _, (one, two, *_) = started(url, make(), n_batch=150, n_rounds=2)
    found = program.decide(one.people.X, sensitive_features=one.people.group)
    yes, no = found.ids[found.accepted], found.ids[~found.accepted]
    program.override(yes[[8, 3, 5]], False, "fraud")
    program.override(no[[4, 1]], True, "has a guarantor")
    program.undo_override([yes[3], no[1]], "the wrong person")
    program.withdraw(yes[[11, 9]])
    rest = rng.permutation(np.append(yes[12:], [yes[3], no[4]]))  # two were overridden
    outcomes = rng.integers(2, size=rest.size)
    program.observe(rest[:-5], outcomes[:-5], unlike_expected=True)
    program.observe(rest, 1 - outcomes, unlike_expected=True)  # corrections, and five new outcomes
    assert dumps(program.classifier) == dumps(Program.open(url).classifier)
    later = two.people
    decided = program.decide(later.X, sensitive_features=later.group)
    assert decided.round == 2
    assert program.verify(relearn=True).problem is None


# Outcomes against what was expected


class Record:
    """A record that knows the counts of outcomes, and counts how often it is asked."""

    def __init__(self, history=(0, 0), own=(0, 0), confirmed=False, pending=0):
        self.pairs, self.n_asked, self.confirmed = (history, own), 0, confirmed
        self.pending = pending

    def entries(self, *, kind):
        assert kind == "outcomes"
        says = [{}, {"unlike_expected": {"stops": self.confirmed}}]
        return [SimpleNamespace(says=one) for one in says]

    def head_counts(self, *, groups):
        assert not groups
        self.n_asked += 1
        rows = [
            (round_, state, n)
            for round_, (bad, of) in enumerate(self.pairs)
            for state, n in ((1, bad), (0, of - bad))
        ]
        rows.append((1, -1, self.pending))
        round_, state, n = (np.array(column, np.int64) for column in zip(*rows, strict=True))
        flags = np.ones(n.size, bool)
        return HeadCounts(round_, flags, flags, np.full(n.size, -1), state, [None] * n.size, n)


def all_compared(before, states, *, record=None, score=0.9, round=1, alpha=0.15, **levels):
    n = len(states)
    standing = Standing(
        *(np.arange(n), np.full(n, round), np.ones(n, bool), np.zeros(n, bool)),
        *(before, np.zeros(n, bool), np.full(n, score)),
    )
    classifier = CertifiedClassifier(alpha=alpha)
    return compare_outcomes(record or Record(), classifier, standing, states, Checks(**levels))


def compared(bad, of, **options):
    """Compare first outcomes of explored applicants."""
    found = all_compared([None] * of, ["bad"] * bad + ["good"] * (of - bad), **options)
    assert {*found} <= {"outcomes"}
    return found.get("outcomes")


def test_a_file_with_good_and_bad_exchanged_stops():
    found = compared(155, 178)
    assert (found.bad, found.of, found.expected, found.stops) == (155, 178, 0.15, True)
    with pytest.raises(InputError, match="155 of 178") as error:
        found.check()
    assert error.value.option == "unlike_expected"
    assert not compared(155, 178, stop=1).stops
    assert compared(155, 178, stop=1, warn=1) is None
    assert compared(9, 10).stops
    assert compared(13, 16, record=Record(own=(16, 22))).stops  # recorded in smaller files
    assert compared(20, 20, record=Record(pending=20)).stops
    assert compared(133, 157, score=0.5).stops  # no scores yet, and none will be right if so


@pytest.mark.parametrize(
    ("bad", "of", "options"),
    [
        (4, 4, {}),  # a small file
        (6, 12, {}),  # chance, if barely
        (33, 178, {}),  # within chance of α
        (109, 178, {"score": 0.45}),  # as their scores said
        (110, 200, {"score": 0.5}),  # before there are scores
        (155, 178, {"round": 0}),  # the history is not the program's
        (120, 178, {"record": Record(history=(600, 900))}),  # as in the history
        (155, 178, {"record": Record(own=(30, 30), confirmed=True)}),  # early bad outcomes
        (80, 178, {"alpha": 0.4}),
    ],
)
def test_plausible_outcomes_pass(bad, of, options):
    assert compared(bad, of, **options) is None


@pytest.mark.parametrize(
    ("before", "now", "corrected"),
    [
        ("gggggggbbb", "bbbbbbbggg", 10),
        ("gggggggbbb", "bbbbbgbggb", 8),  # exchanged, and some are corrections
        ("gggggggbbb", "bbbbggggbb", 0),  # half
        ("gggggggbbb", "bbbbbbbbbb", 0),  # one direction
        ("gggb", "bbbg", 0),  # a small file
        ("gggb" + "i" * 9, "bbbgggggggggg", 0),  # arrived after all
        ("gggb" + "g" * 9, "bbbg" + "i" * 9, 0),  # withdrawn
    ],
)
def test_known_outcomes_with_good_and_bad_exchanged_stop(before, now, corrected):
    words = {"g": "good", "b": "bad", "i": "withdrawn"}
    before, now = ([words[letter] for letter in word] for word in (before, now))
    found = all_compared(before, now)
    assert [one.corrected for one in found.values()] == [corrected] * (corrected > 0)
    assert {*found} <= {"correction"}
    assert all(one.stops for one in found.values())
    assert all_compared(before, now, stop=1) == {}


def test_a_bad_pilot_is_reported_and_does_not_stop():
    record = Record(history=(90, 900))
    found = compared(60, 178, record=record)
    assert (found.stops, found.expected, record.n_asked) == (False, 0.15, 1)
    assert not compared(89, 178).stops  # half of them: exchanged, they would fit no better
    assert compared(20, 178, record=record) is None
    assert record.n_asked == 1  # nothing was counted for a file that is as expected


def test_early_bad_outcomes_are_reported_and_do_not_stop():
    """Of 180 accepted applicants, the first 20 of whom something is known are bad."""
    found = compared(20, 20, record=Record(pending=180))
    assert (found.bad, found.stops) == (20, False)
    assert compared(20, 20, record=Record(own=(100, 100), pending=80)).stops  # two in three by now
    assert compared(19, 20, record=Record(pending=180)).stops  # good ones are known, too


def test_outcomes_as_expected_are_rarely_reported():
    """With shares at the bound, where every surplus is chance."""
    rng = np.random.default_rng(4)
    n_files = 4000
    bad = rng.binomial(200, 0.15, n_files).tolist()
    found = [compared(n, 200, warn=1e-9) for n in bad]
    assert not any(one is not None and one.stops for one in found)
    assert sum(one is not None for one in found) <= 2
    worse = rng.binomial(200, 0.3, 100).tolist()
    assert sum(compared(n, 200) is not None for n in worse) > 50  # a control


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
@pytest.mark.parametrize("make", [algorithm_1, lambda: certified(floor=0.1)])
def test_refused_outcomes_stay_pending_and_a_confirmation_is_recorded(tmp_path, make):
    program, _, (one, two, *_) = started(url := f"sqlite:///{tmp_path}/a.db", make(), 600)
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    yes = decided.accepted
    ids, right = decided.ids[yes], one.outcome[yes]
    before = program.checkpoint()
    with pytest.raises(InputError) as error:
        program.observe(ids, 1 - right)
    assert error.value.option == "unlike_expected"
    assert program.checkpoint() == before
    assert set(program.standing(ids).states) == {None}
    program.observe(ids, 1 - right, unlike_expected=True)
    with pytest.raises(InputError, match=f"{yes.sum()} of {yes.sum()}"):
        program.observe(ids, right)
    assert program.standing(ids).states == ["bad" if good else "good" for good in right]
    program.observe(ids, right, unlike_expected=True)
    with program.reading() as view:
        (first,) = view.reader.entries(kind="outcomes")
        (then,) = view.reader.entries(kind="correction")
        assert {*view.summary().unlike_outcomes} == {first.number, then.number}
    first, then = (entry.says["unlike_expected"] for entry in (first, then))
    assert (first["stops"], first["of"], first["corrected"]) == (True, yes.sum(), 0)
    assert (then["stops"], then["of"], then["corrected"]) == (True, yes.sum(), yes.sum())
    program.decide(two.people.X, sensitive_features=two.people.group)
    assert dumps(program.classifier) == dumps(Program.open(url).classifier)
    assert program.verify(relearn=True).problem is None
