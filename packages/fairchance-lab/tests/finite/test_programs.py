"""Programs of the finite method and of many classes: recorded, erased and verified."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fairchance as fc
import fairchance_lab
from fairchance.errors import InputError, UnknownIdError
from fairchance.ledger.program import Program
from fairchance.ledger.verification.walk import verify
from ledger.lived_programs import entries
from refused_people import log_odds

WORD = "a-word-of-their-own"
GOOD = {"baker": 0.75, "cook": 0.96, "smith": 0.9}


def people(rng, n, odd=0):
    """Return a frame of words and numbers; the first ``odd`` people have a word of their own."""
    job = rng.choice(["baker", "cook", "smith"], n).astype(object)
    good = (rng.random(n) < np.array([GOOD[one] for one in job])).astype(int)
    job[:odd] = WORD
    frame = pd.DataFrame({"job": job.astype(str), "home": rng.integers(2, size=n)})
    return frame, pd.Series(np.where(rng.random(n) < 0.4, "B", "A"), name="sex"), good


def cells(**options):
    return fairchance_lab.FiniteClassifier(
        utility=fc.Revenue(1, 3), budget=fc.FdrBudget(alpha=0.2), random_state=0, **options
    )


def started(place, classifier, rng, n=200):
    X, group, good = people(rng, n, odd=2)
    accepted = (X["job"] != "baker").to_numpy()
    return Program.create(place, classifier, X, good, accepted=accepted, sensitive_features=group)


def lived(place, classifier, rng, n_rounds=2):
    program, made = started(place, classifier, rng), []
    for _ in range(n_rounds):
        X, group, good = people(rng, 80, odd=3)
        batch = program.decide(X, sensitive_features=group)
        yes = batch.accepted
        program.observe(batch.ids[yes], good[yes])
        made.append(batch)
    return program, made


def proved(program, **options):
    found = verify(program.ledger, checkpoint=program.checkpoint(), **options)
    assert found.ok, found.problem
    return found


OPTIONS = {
    "aware": {},
    "blind": {"group_mode": "blind", "fairness": fc.SelectionRateParity(0.1), "maturity": 2},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_cells_are_decided_erased_and_verified(place, name, rng, tmp_path):
    program, made = lived(place, cells(**OPTIONS[name]), rng)
    found = proved(program)
    assert (found.n_decisions, found.n_not_repeated) == (160, 0)
    n_cells = len(program.classifier.counts_.applicants)
    assert (program.classifier.cells_[0] == WORD).any()
    assert WORD.encode() in (tmp_path / "ledger.db").read_bytes()
    gone = np.concatenate([[0, 1], *(one.ids[:3] for one in made), made[0].ids[10:30]])
    assert program.erase(gone, "they asked for it", early=True) == gone.size
    counted = program.classifier.counts_
    assert len(counted.applicants) < n_cells
    assert counted.applicants.sum() == 200 + 160 - gone.size
    assert WORD.encode() not in (tmp_path / "ledger.db").read_bytes()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        tables = connection.execute("select name from sqlite_master where type = 'table'")
        rows = [connection.execute(f"select * from {one}").fetchall() for (one,) in tables]
    assert WORD not in repr(rows)
    proved(program)
    again = Program.open(place)
    X, group, good = people(rng, 80)
    batch = again.decide(X, sensitive_features=group, batch="after")
    yes = batch.accepted
    again.observe(batch.ids[yes], good[yes])
    repeated = again.decide(X, sensitive_features=group, batch="after")
    assert repeated.ids.tolist() == batch.ids.tolist()
    assert again.classifier.counts_.applicants.sum() == counted.applicants.sum() + 80
    with pytest.raises(UnknownIdError, match=str(gone[0])):
        again.erase(gone[:1], "again", early=True)
    found = proved(again)
    assert found.n_decisions == 80  # those before rest on people who are gone
    with again.ledger.reading(again.name) as reader:
        modes = {entry.says["group_mode"] for entry in reader.entries(kind="batch")}
    assert modes == {name}


def test_a_twin_without_a_ledger_decides_and_forgets_alike(place, rng):
    program, made = lived(place, cells(), np.random.default_rng(3))
    twin_rng = np.random.default_rng(3)
    X, group, good = people(twin_rng, 200, odd=2)
    twin = cells().fit(X, good, accepted=(X["job"] != "baker").to_numpy(), sensitive_features=group)
    for batch in made:
        X, group, good = people(twin_rng, 80, odd=3)
        decided = twin.decide(X, sensitive_features=group)
        assert np.array_equal(decided.propensity, batch.propensity)
        twin.observe(decided.ids[decided.accepted], good[decided.accepted])
    gone = made[1].ids[::2]
    program.erase(gone, "over", early=True)
    twin.forget(gone)
    X, group, _ = people(rng, 100)
    one, other = (each.decide(X, sensitive_features=group) for each in (program, twin))
    assert np.array_equal(one.accepted, other.accepted)
    assert np.array_equal(one.score, other.score)


def test_nothing_is_learned_from_overridden_and_withdrawn_applicants(place, rng):
    program, _ = lived(place, cells(maturity=0), rng, n_rounds=1)
    X, group, good = people(rng, 120)
    batch = program.decide(X, sensitive_features=group)
    yes = batch.ids[batch.accepted]
    before = program.classifier.n_outcomes_
    program.override(yes[:10], False, "the branch decided otherwise")
    program.withdraw(yes[10:20])
    program.observe(yes[20:], good[batch.accepted][20:])
    classifier = program.classifier
    assert classifier.n_outcomes_ == before + yes.size - 20
    # With maturity 0 missing outcomes count as bad, but not those of these twenty.
    counted = classifier._count(len(classifier.cells_[0]), 9)
    assert counted.outcomes.sum() == before + yes.size - 20
    proved(program)


def test_an_unknown_group_is_refused_and_nothing_is_recorded(place, rng):
    program, _ = lived(place, cells(), rng, n_rounds=1)
    before = program.checkpoint()
    X, group, _ = people(rng, 50)
    with pytest.raises(InputError, match="'C'"):
        program.decide(X, sensitive_features=group.replace("A", "C"))
    assert program.checkpoint() == before


@pytest.mark.parametrize(
    "make",
    [
        lambda: cells(group_mode="audit"),
        lambda: cells(group_mode="blind", fairness=fc.SelectionRateParity(0.3)),
        lambda: fc.CertifiedClassifier(
            alpha=0.3, learner=LogisticRegression(), group_mode="audit", random_state=0
        ),
    ],
)
def test_an_unknown_group_that_may_not_decide_is_counted_and_verified(place, rng, make):
    X, group, good = people(rng, 300)
    program = Program.create(place, make(), X, good, sensitive_features=group)
    with pytest.raises(InputError, match=r"of 300 .*'sex'"):
        program.decide(X, sensitive_features=group.replace("A", "C"))
    for t in range(2):
        X, group, good = people(rng, 60)
        batch = program.decide(
            X, sensitive_features=group.replace("A", "C"), batch=str(t), unlike_history=True
        )
        program.observe(batch.ids[batch.accepted], good[batch.accepted])
        program = Program.open(place)
    again = program.decide(X, sensitive_features=group.replace("A", "C"), batch="1")
    assert np.array_equal(again.accepted, batch.accepted)
    assert program.classifier.group_counts_[-1].group == "C"
    found = {one.group: one.n_people for one in program.summary().groups}
    assert found["C"] == sum(
        one.n_people for one in program.classifier.group_counts_ if one.group == "C"
    )
    for relearn in (False, True):
        assert proved(program, relearn=relearn).n_decisions == 120


def test_two_classes_of_many_are_erased_and_verified(place, rng):
    def claims(n):
        X = rng.normal(size=(n, 2))
        return X, np.where(X[:, 0] + rng.normal(size=n) > 0, "fair", "fraud")

    classifier = fairchance_lab.ManyClassClassifier(
        {"refuse": {"fair": 0, "fraud": 0}, "pay": {"fair": 1, "fraud": -3}},
        good=["fair"],
        budget=fc.FdrBudget(alpha=0.3),
        random_state=0,
    )
    X, y = claims(500)
    program = Program.create(place, classifier, X, y, accepted=X[:, 1] > -1)
    assert (program.shape.good, program.shape.bad) == ("fair", "fraud")
    made = []
    for _ in range(2):
        X, y = claims(150)
        batch = program.decide(X)
        program.observe(batch.ids[batch.accepted], y[batch.accepted])
        made.append((batch, y))
    assert proved(program).n_decisions == 300
    gone = np.concatenate([np.arange(0, 500, 5), *(one.ids[::3] for one, _ in made)])
    program.erase(gone, "over", early=True)
    proved(program)
    seen = program.classifier.rounds_[1].seen
    batch, y = made[1]
    left = batch.accepted & ~np.isin(batch.ids, gone)
    assert seen == {name: int((left & (y == name)).sum()) for name in ("fair", "fraud")}
    program.decide(claims(100)[0])
    assert proved(program).n_decisions == 100


def test_more_than_two_decisions_or_classes_are_refused(place, rng):
    X, y = rng.normal(size=(60, 2)), rng.integers(2, size=60)
    three = {"no": {0: 0, 1: 0}, "small": {0: -1, 1: 1}, "large": {0: -6, 1: 2.5}}
    good = {"small": [1], "large": [1]}
    seen = ["small", "large"]
    classifier = fairchance_lab.ManyClassClassifier(three, observed=seen, good=good, random_state=0)
    with pytest.raises(InputError, match="no, small, large"):
        Program.create(place, classifier, X, y)
    with pytest.raises(InputError, match=r"\[0, 1, 2\]"):
        Program.create(
            place, fairchance_lab.ManyClassClassifier(random_state=0), X, np.arange(60) % 3
        )


def test_classifiers_that_store_no_policies_are_replayed(place):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(400, 2)).astype(float)
    good = (rng.random(400) < 0.3 + 0.2 * X[:, 0]).astype(int)
    program = Program.create(
        place,
        fairchance_lab.FiniteClassifier(random_state=0),
        X[:300],
        good[:300],
        accepted=X[:300, 0] > 0,
    )
    program.decide(X[300:])
    found = proved(program)
    assert (found.n_decisions, found.n_learned_again) == (100, 100)
    assert entries(program, "policy") == []


def test_no_mixture_without_stored_policies(place, rng):
    X = rng.integers(0, 3, (300, 2))
    good = rng.random(300) < 0.95
    program = Program.create(place, fairchance_lab.FiniteClassifier(random_state=0), X, good)
    program.decide(X[:50])
    with pytest.raises(InputError, match="FiniteClassifier"):
        program.decision_log(mixture=True)
    log = program.decision_log()
    assert len(log) == 50
    assert np.array_equal(log.X, X[:50])


def test_reasons_of_cells_are_differences_to_neighbouring_cells(place):
    rng = np.random.default_rng(11)

    def people(n):
        X = rng.integers(0, 3, size=(n, 3)).astype(float)
        good = rng.random(n) < 1 / (1 + np.exp(1.5 - X @ np.array([1.2, -0.4, 0.6])))
        return X, good.astype(int), rng.choice(["A", "B"], n)

    X, good, group = people(1500)
    accepted = X[:, 0] + X[:, 2] >= 1
    program = Program.create(
        place,
        fairchance_lab.FiniteClassifier(random_state=0),
        X,
        good,
        accepted=accepted,
        sensitive_features=group,
    )
    values = [np.unique(X[accepted, j], return_counts=True) for j in range(3)]
    reference = [one[np.argmax(counts)] for one, counts in values]
    for _ in range(2):
        X, good, group = people(300)
        decided = program.decide(X, sensitive_features=group)
        cells = program.classifier.cells_
        score = {
            (*x, z): log_odds(np.clip(p, 1e-15, 1 - 1e-15))
            for x, z, p in zip(
                cells[0].tolist(), cells[1], program.classifier.policies_[-1].score, strict=True
            )
        }
        no = ~decided.accepted
        assert 0 < no.sum() < 300
        reasons = program.reasons(decided.ids[no])
        for person, z, each in zip(X[no].tolist(), group[no], reasons.values(), strict=True):
            by_column = []
            for j in range(3):
                other = [reference[j] if at == j else one for at, one in enumerate(person)]
                by_column.append((score[*person, z] - score[*other, z], f"x{j}"))
            expected = sorted(one for one in by_column if one[0] < -1e-6)
            assert [name for name, _ in each] == [name for _, name in expected]
            assert np.allclose([v for _, v in each], [v for v, _ in expected], rtol=1e-6)
        assert max(map(len, reasons.values())) > 1
        program.observe(decided.ids[~no], good[~no])
    assert verify(program.ledger).problem is None
