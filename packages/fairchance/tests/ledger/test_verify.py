"""Verification of whole programs: checkpoints, false decisions and damaged ledgers."""

from __future__ import annotations

import collections
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairchance import Uniform
from fairchance.errors import InputError, LedgerError
from fairchance.ledger.base import Entry, Facts
from fairchance.ledger.chain import Checkpoint
from fairchance.ledger.program import Program
from fairchance.ledger.replay import Allowed
from fairchance.ledger.sql import SqlLedger, Writer
from fairchance.ledger.summary import summarise
from fairchance.ledger.verification.proofs import (
    ByLearning,
    ByPolicies,
    GroupTrial,
    MismatchError,
)
from fairchance.ledger.verification.walk import verify
from ledger_worlds import algorithm_1, certified, started


def a_life(url, classifier):
    """Return a program with one entry of every kind."""
    program, _, (one, two, *_) = started(url, classifier, n_batch=60)
    decided = program.decide(one.people.X, sensitive_features=one.people.group, batch="b1")
    yes, no = decided.ids[decided.accepted], decided.ids[~decided.accepted]
    program.observe(yes[2:], one.outcome[decided.accepted][2:])
    program.observe(yes[2:3], 1 - one.outcome[decided.accepted][2:3])
    program.override(yes[:1], False, "fraud was found")
    program.withdraw(yes[1:2])
    program.snapshot()
    program.decide(two.people.X, sensitive_features=two.people.group, batch="b2")
    return program, decided, no


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the file of a ledger with one entry of every kind, an erasure included."""
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    program, _, _ = a_life(f"sqlite:///{path}", algorithm_1())
    with program.ledger.writing("main") as writer:
        last = writer.people_end() - 1
        writer.append("erasure", {"why": "asked"}, Facts(erased=np.array([last])), by="t")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture
def tampered(whole, tmp_path):
    """Return a function that runs SQL on a copy of the ledger and verifies it."""

    def run(*statements, checkpoint=None):
        url = damaged(whole, tmp_path, *statements)
        return verify(SqlLedger(url), checkpoint=checkpoint)

    return run


def damaged(whole, folder, *statements):
    """Run SQL on a copy of a ledger, and return the URL of the copy."""
    path = folder / "ledger.db"
    shutil.copy(whole, path)
    connection = sqlite3.connect(path, isolation_level=None)
    for one in statements:
        assert connection.execute(one).rowcount != 0
    connection.close()
    return f"sqlite:///{path}"


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_an_honest_ledger_verifies(url, make):
    program, decided, _ = a_life(url, make())
    found = verify(program.ledger, checkpoint=program.checkpoint())
    assert found.problem is None
    assert found.ok
    assert found.head == program.checkpoint()
    assert (found.n_decisions, found.n_not_repeated) == (2 * len(decided), 0)


def test_a_ledger_with_erased_applicants_verifies(tampered):
    found = tampered()
    assert found.problem is None
    assert found.n_decisions + found.n_not_repeated == 120
    assert 1 <= found.n_not_repeated < 60  # the erased, and whoever was drawn beside them


def test_a_program_name_that_is_not_text(whole, tmp_path):
    url = damaged(
        whole,
        tmp_path,
        "INSERT INTO programs (name) VALUES ('other')",
        "UPDATE programs SET name = x'00' WHERE name = 'main'",
    )
    ledger = SqlLedger(url)
    assert ledger.programs() == [b"\x00", "other"]
    with pytest.raises(LedgerError, match=r"'main' .* b'"):
        verify(ledger, "main")
    with pytest.raises(LedgerError, match="2"):
        verify(ledger)


def test_a_program_without_entries_is_found_beside_another(whole, tmp_path):
    url = damaged(whole, tmp_path, "INSERT INTO programs (name) VALUES ('other')")
    problem = verify(SqlLedger(url), "main").problem
    assert problem == "program 'other' in table programs has no entries."


def replayed(url):
    with SqlLedger(url).reading("main") as reader:
        for one in reader.entries():
            reader.facts(one)


def listed(url):
    with SqlLedger(url).reading("main") as reader:
        reader.listed(600, 660, groups=True)


def counted(url):
    summarise(SqlLedger(url))


@pytest.mark.parametrize(
    ("statement", "readers"),
    [
        ("UPDATE entries SET header = '{' WHERE number = 4", (replayed, counted)),
        ("UPDATE entries SET header = '[]' WHERE number = 4", (replayed, counted)),
        ("UPDATE entries SET header = '{}' WHERE number = 4", (replayed, counted)),
        ("UPDATE entries SET header = x'ff' WHERE number = 4", (replayed, counted)),
        ("UPDATE entries SET header = '{\"rows\":7}' WHERE number = 4", (replayed,)),
        ("UPDATE group_values SET value = '[' WHERE person = 620", (replayed, listed, counted)),
        ("UPDATE group_values SET value = x'00' WHERE person = 620", (replayed, listed, counted)),
        ("UPDATE group_values SET value = '[1,2]' WHERE person = 620", (replayed, listed)),
        ("UPDATE people SET numbers = x'0011' WHERE person = 620", (replayed, listed)),
        ("UPDATE people SET numbers = 'x' WHERE person = 620", (replayed, listed)),
        ("UPDATE people SET texts = '[' WHERE person = 620", (replayed, listed)),
        ("UPDATE people SET application = x'00' WHERE person = 620", (replayed, listed)),
        ("UPDATE people SET score = 'high' WHERE person = 620", (replayed, listed)),
        ("UPDATE outcomes SET state = 'fair' WHERE entry = 5", (replayed, counted)),
    ],
)
def test_readers_report_a_damaged_ledger_in_one_sentence(whole, tmp_path, statement, readers):
    url = damaged(whole, tmp_path, statement)
    for read in readers:
        with pytest.raises(LedgerError, match=r"cannot be read \(.+\); verify the ledger\.$"):
            read(url)
    assert not verify(SqlLedger(url)).ok


def test_a_missing_key_of_a_header_is_named():
    entry = Entry(7, "batch", "b", "", "t", '{"rows":{"n":1},"rounds":[{"a":2}]}', b"", b"", b"")
    assert entry.says == {"rows": {"n": 1}, "rounds": [{"a": 2}]}
    assert entry.says.get("other") is None
    with pytest.raises(LedgerError, match=r"entry 7 cannot be read \(its header lacks 'first'\)"):
        entry.says["rows"]["first"]


def test_a_checkpoint_reveals_a_chain_that_was_cut_off(tampered, whole):
    with SqlLedger(f"sqlite:///{whole}").reading("main") as reader:
        kept = Checkpoint.read(str(reader.head()))
    cut = [
        f"DELETE FROM {table} WHERE {column} >= {least}"
        for table, column, least in (("erasures", "entry", 0), ("entries", "number", kept.number))
    ]
    cut += [f"UPDATE {t} SET salt = salt WHERE person = 620" for t in ("people", "group_values")]
    with SqlLedger(f"sqlite:///{whole}").reading("main") as reader:
        first = next(iter(reader.entries(kind="override")))
    assert tampered(checkpoint=kept).ok
    found = tampered(*cut, checkpoint=kept)
    assert not found.ok
    forged = replace(kept, number=first.number)
    found = tampered(checkpoint=forged)
    assert f"entry {first.number} (override" in found.problem
    found = tampered(checkpoint=replace(kept, number=kept.number + 5))
    assert f"ends at {kept.number}" in found.problem


def test_invalid_checkpoints_are_refused():
    digest = "0" * 64
    strange = ("", "3:abc:main", f"x:{digest}:main", f"3:{digest}:")
    for text in (*strange, f"0:{digest}:main", f"-3:{digest}:main"):
        with pytest.raises(InputError, match=re.escape(repr(text))):
            Checkpoint.read(text)
    assert Checkpoint.read(f"1:{digest}:main").number == 1


def test_a_checkpoint_without_an_entry_is_refused(whole):
    with pytest.raises(InputError, match=r"\b0\b"):
        verify(SqlLedger(f"sqlite:///{whole}"), checkpoint=Checkpoint("main", 0, bytes(32)))


def lying(monkeypatch, lie):
    """Record other decisions than those that were made, with hashes that match."""
    append = Writer.append

    def other(self, kind, header, facts, **options):
        if kind == "batch" and options["key"] == "b2":
            header, facts = lie(dict(header), facts)
        return append(self, kind, header, facts, **options)

    monkeypatch.setattr(Writer, "append", other)


@pytest.mark.parametrize(
    ("make", "column"),
    [
        (algorithm_1, "accepted"),
        (algorithm_1, "exploit"),
        (algorithm_1, "score"),
        (algorithm_1, "propensity"),
        (algorithm_1, "threshold"),
        (certified, "accepted"),
        (certified, "score"),
        (certified, "propensity"),
    ],
)
def test_a_false_decision_with_true_hashes_is_detected(tmp_path, monkeypatch, make, column):
    url = f"sqlite:///{tmp_path}/ledger.db"
    what = "region" if column == "exploit" else column

    def lie(header, facts):
        values = getattr(facts.decisions, column).copy()
        other = {"f": lambda one: one + 1e-4, "b": lambda one: ~one, "i": lambda one: 1 - one}
        values[11] = other[values.dtype.kind](values[11])
        return header, replace(facts, decisions=replace(facts.decisions, **{column: values}))

    lying(monkeypatch, lie)
    program, decided, _ = a_life(url, make())
    found = verify(program.ledger)
    assert (
        f"the {what} of application '{decided.ids[-1] + 12}' differs from the record"
        in found.problem
    )
    if make is certified:  # a state after it stores what Algorithm 1 learned
        with pytest.raises(LedgerError, match=r"round 2 does not follow from its policy"):
            Program.open(url)


@pytest.mark.parametrize("mode", ["blind", "audit"])
def test_groups_that_may_not_decide_do_not_decide(tmp_path, monkeypatch, mode):
    program, _, _ = a_life(
        f"sqlite:///{tmp_path}/honest.db", algorithm_1(group_mode=mode, strategy=None)
    )
    for relearn in (False, True):
        found = verify(program.ledger, relearn=relearn)
        assert (found.problem, found.groups) == (None, GroupTrial(mode, found.n_decisions, 2))

    lying(monkeypatch, lambda header, facts: (header | {"group_mode": mode}, facts))
    program, _, _ = a_life(f"sqlite:///{tmp_path}/lying.db", algorithm_1())
    assert "depends on groups, which may not decide" in verify(program.ledger).problem


@pytest.mark.parametrize("relearn", [False, True])
def test_a_false_score_is_not_taken_for_a_use_of_groups(tmp_path, monkeypatch, relearn):
    def lie(header, facts):
        score = facts.decisions.score.copy()
        score[3] += 0.01
        return header, replace(facts, decisions=replace(facts.decisions, score=score))

    lying(monkeypatch, lie)
    blind = algorithm_1(group_mode="blind", strategy=None)
    program, _, _ = a_life(f"sqlite:///{tmp_path}/x.db", blind)
    with program.ledger.reading("main") as reader:
        proof = (ByLearning if relearn else ByPolicies)(reader, Allowed())
        with pytest.raises(MismatchError, match=r"the score of .* differs from the record"):
            collections.deque(map(proof.step, reader.entries()))
    # The batch before was tried with other groups.
    assert proof.groups.n_rounds == (0 if relearn else 1)


def test_a_checkpoint_names_its_program(whole, tmp_path):
    url = damaged(whole, tmp_path, "INSERT INTO programs VALUES (2, 'other')")
    with SqlLedger(url).reading("main") as reader:
        kept = reader.head()
    assert verify(url, checkpoint=kept).head == kept
    with pytest.raises(InputError, match="other"):
        verify(url, "other", checkpoint=kept)
    with pytest.raises(LedgerError, match="third"):
        verify(url, checkpoint=replace(kept, program="third"))


def test_through_what_groups_may_decide(tmp_path):
    def of_groups(number, **options):
        classifier = algorithm_1(learner=LogisticRegression(), **options)
        program, _, _ = started(f"sqlite:///{tmp_path}/{number}.db", classifier)
        return verify(program.ledger).groups

    found = of_groups(1, group_as_feature=True, thresholds="per_group")
    assert (found.mode, found.n_decisions, len(found.uses)) == ("aware", 0, 3)
    assert {*found.uses[:2]} == {"group_as_feature=True", "thresholds='per_group'"}
    assert "GroupShare" in found.uses[2]
    assert of_groups(2, strategy=Uniform()) == GroupTrial("aware")
    assert of_groups(3, group_mode="audit", strategy=Uniform()) == GroupTrial("audit")
    X = np.random.default_rng(0).normal(size=(100, 2))
    clf = algorithm_1(learner=LogisticRegression(), strategy=Uniform())
    alone = Program.create(f"sqlite:///{tmp_path}/4.db", clf, X, X[:, 0] > 0)
    assert verify(alone.ledger).groups == GroupTrial(None)


@pytest.mark.parametrize("relearn", [False, True])
@pytest.mark.parametrize("n", [1, 25])
def test_a_deciding_group_is_detected_in_a_batch_of_one_group(tmp_path, monkeypatch, n, relearn):
    """There it changes nothing to exchange the groups of applicants."""
    lying(monkeypatch, lambda header, facts: (header | {"group_mode": "blind"}, facts))

    def decided(classifier, name):
        program, _, (one, *_) = started(f"sqlite:///{tmp_path}/{name}.db", classifier, n_batch=60)
        people = one.people
        rows = np.flatnonzero(people.group == people.group[0])[:n]
        assert rows.size == n
        program.decide(people.X[rows], sensitive_features=people.group[rows], batch="b2")
        return verify(program.ledger, relearn=relearn)

    blind = decided(algorithm_1(group_mode="blind", strategy=None), "honest")
    assert (blind.problem, blind.n_decisions) == (None, n)
    assert blind.groups == GroupTrial("blind", n, 1)
    found = decided(algorithm_1(group_as_feature=True), "lying")
    assert "depends on groups, which may not decide" in found.problem
