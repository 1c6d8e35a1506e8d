"""Ids, texts and tables that a program refuses."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from fairchance.errors import InputError
from fairchance.ledger.program import Program
from fairchance.ledger.retention import MOST_MONTHS
from fairchance.ledger.verification.walk import verify
from ledger_worlds import algorithm_1, same, started
from small_worlds import lender_world

WRONG = [
    "",
    " 1",
    "1\N{NO-BREAK SPACE}",
    unicodedata.normalize("NFD", "Zoë"),
    "\N{ANGSTROM SIGN}",
    "a\N{ZERO WIDTH SPACE}b",
    "a\tb",
]


def named(url, ids, **options):
    """Return a program with text ids, and the applicants of three batches."""
    world = lender_world(0, n_batch=20, n_rounds=3)
    past = world.history()
    history = {"accepted": past.accepted, "sensitive_features": past.people.group}
    names = [f"h{at}" for at in range(len(past.people.X))]
    names[: len(ids)] = ids
    program = Program.create(
        url, algorithm_1(), past.people.X, past.outcomes, **history, ids=names, **options
    )
    return program, [one.applicants.people for one in world.batches()]


@pytest.mark.parametrize("name", WRONG)
def test_ids_that_look_like_others_are_refused(tmp_path, name):
    url = f"sqlite:///{tmp_path}/ledger.db"
    with pytest.raises(InputError, match=re.escape(ascii(name))):
        named(url, ["h", name])
    program, (one, two, _) = named(url, ["Zoë", "Å", "1", "a b"])
    before = program.checkpoint()
    ids = [f"é{at}" for at in range(20)]
    for kind in (list, np.array, pd.Series):
        with pytest.raises(InputError, match=re.escape(ascii(name))):
            program.decide(one.X, sensitive_features=one.group, ids=kind([*ids[:19], name]))
    assert program.checkpoint() == before
    assert program.decide(one.X, sensitive_features=one.group, ids=ids).round == 1
    numbers = [str(at) for at in range(100, 120)]
    assert program.decide(two.X, sensitive_features=two.group, ids=numbers).round == 2


def test_a_ledger_with_such_ids_still_works(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/ledger.db"
    strange = [*WRONG, *(f"x{at}" for at in range(20 - len(WRONG)))]
    with monkeypatch.context() as before:
        before.setattr("fairchance.ledger.answers.check_spelling", lambda _ids: None)
        program, (one, two, three) = named(url, [" h1", "h1"])
        group = {"sensitive_features": one.group}
        first = program.decide(one.X, ids=strange, batch="first", **group)
    program = Program.open(url)
    assert same(program.decide(one.X, ids=strange, batch="first", **group), first)
    with pytest.raises(InputError, match="id"):
        program.decide(two.X, sensitive_features=two.group, ids=[" y", *"abcdefghijklmnopqrs"])
    yes = first.ids[first.accepted]
    program.observe(yes, np.ones(yes.size))
    program.hold(["", " 1"], "a court asks")
    program.erase([" h1"], "asked", early=True)
    ids = [f"z{at}" for at in range(20)]
    assert program.decide(three.X, sensitive_features=three.group, ids=ids).round == 2
    assert verify(url).ok


@pytest.mark.parametrize(
    "about", [{"x": "\ud800"}, {"\ud800": 1}, {"x": [{"y": ("a", "\udfff")}]}, {"x": "a\0"}]
)
def test_about_with_text_that_no_database_stores(tmp_path, about):
    program, _, (first, *_) = started(f"sqlite:///{tmp_path}/lender.db", algorithm_1())
    before = program.checkpoint()
    with pytest.raises(InputError, match="about"):
        program.decide(first.people.X, sensitive_features=first.people.group, about=about)
    with pytest.raises(InputError, match="about"):
        Program.create(
            f"sqlite:///{tmp_path}/other.db", algorithm_1(), np.eye(4), [1, 0, 1, 0], about=about
        )
    assert program.checkpoint() == before


def test_a_sparse_batch_is_refused(tmp_path):
    program, _, (first, *_) = started(f"sqlite:///{tmp_path}/lender.db", algorithm_1())
    X, group = first.people.X, first.people.group
    with pytest.raises(InputError, match="csr_array"):
        program.decide(csr_array(X), sensitive_features=group)
    with pytest.raises(InputError, match="the batch is empty"):
        program.decide(csr_array(X[:0]), sensitive_features=group[:0])


def test_masked_cells_are_missing(tmp_path):
    program, _, (first, *_) = started(f"sqlite:///{tmp_path}/lender.db", algorithm_1())
    X, group = first.people.X, first.people.group
    mask = np.zeros(X.shape, np.bool_)
    mask[7, 1] = True
    for batch, options, words in (
        (
            X,
            {"ids": np.ma.array(np.arange(200) + 10**6, mask=mask[:, 1])},
            "1 of 200 ids are masked",
        ),
        (X, {"sensitive_features": np.ma.array(group, mask=mask[:, 1])}, "holds the group None"),
    ):
        with pytest.raises(InputError, match=words):
            program.decide(batch, **({"sensitive_features": group} | options))
    masked, gaps = np.ma.array(X, mask=mask), np.where(mask, np.nan, X)
    decided = program.decide(masked, sensitive_features=np.ma.array(group), batch="gaps")
    again = program.decide(gaps, sensitive_features=group, batch="gaps")  # the same content
    assert np.array_equal(again.accepted, decided.accepted)
    yes = decided.ids[decided.accepted][:2]
    for ids, outcomes, words in (
        (yes, np.ma.array([1, 0], mask=[0, 1]), "outcomes.*None"),
        (np.ma.array(yes, mask=[0, 1]), [1, 0], "ids.*None"),
    ):
        with pytest.raises(InputError, match=words):
            program.observe(ids, outcomes)
    assert not program.standing(yes).states[0]


@pytest.mark.parametrize("months", [MOST_MONTHS + 1, 10**5, -1])
def test_retention_periods_that_are_refused(tmp_path, months):
    url = f"sqlite:///{tmp_path}/ledger.db"
    with pytest.raises(InputError, match=f"from 0 to 1200, got {months};"):
        started(url, algorithm_1(), about={"retention_months": months})
    program, *_ = started(url, algorithm_1(), about={"retention_months": MOST_MONTHS})
    assert program.expired().size == 0


@pytest.mark.parametrize("reason", ["half a \ud800 pair", "a\0b"])
def test_a_reason_with_text_that_no_database_stores(tmp_path, reason):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/ledger.db", algorithm_1(), n_batch=20)
    ids = program.decide(one.people.X, sensitive_features=one.people.group).ids[:1]
    program.hold(ids, "a court asks")
    before = program.checkpoint()
    for what, call in (
        ("a hold", lambda: program.hold(ids, reason)),
        ("a release", lambda: program.release(ids, reason)),
        ("an erasure", lambda: program.erase(ids, reason, early=True)),
        ("an override", lambda: program.override(ids, True, reason)),
    ):
        with pytest.raises(InputError, match=what):
            call()
    assert program.checkpoint() == before
