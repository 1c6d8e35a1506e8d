"""What a notebook shows of decisions, rounds and programs."""

from dataclasses import replace

import numpy as np
import pytest

import fairchance as fc
from fairchance.core import decisions
from fairchance.core.decisions import Note
from fairchance.errors import visible
from fairchance.ledger import Program
from fairchance.ledger.summary import Outcomes, Summary
from fairchance.notebook import Records, in_words
from fairchance.people.likeness import Unlike
from fairchance.words.batches import unlike_words
from fairchance.words.checks import rate_text
from notebook_cells import HOSTILE, NAME, TAGS, Page, shown


def applicants(rng, n, name=NAME):
    """Return features, outcomes, and hostile groups and ids."""
    X = rng.normal(size=(n, 2))
    good = (rng.random(n) < 1 / (1 + np.exp(-2 - 3 * X[:, 0]))).astype(int)
    ids = [f"{name}{i}" for i in rng.permutation(1_000_000)[:n]]
    return X, good, {"sensitive_features": np.where(X[:, 1] > 0, name, "B"), "ids": ids}


def decided(clf, name=NAME):
    """Return a classifier that decided three rounds, and the last batch."""
    rng = np.random.default_rng(0)
    X, good, more = applicants(rng, 400, name)
    clf = clf.fit(X, good, accepted=X[:, 0] > 0, **more)
    for _ in range(3):
        X, good, more = applicants(rng, 200, name)
        batch = clf.decide(X, **more)
        clf.observe(batch.ids[batch.accepted], good[batch.accepted])
    return clf, batch


@pytest.fixture(scope="module")
def certified():
    return decided(fc.CertifiedClassifier(certify="per_group", random_state=0), HOSTILE)


@pytest.fixture(scope="module")
def explored():
    return decided(fc.PartialFeedbackClassifier(random_state=0))


def test_all_text_is_escaped_and_long_cells_are_cut():
    page = Page(in_words(HOSTILE, HOSTILE, "", titles=[HOSTILE], rows=[[HOSTILE]], left_out=1_000))
    assert set(page.tags) == TAGS
    lead, title, cell, more, note = page.texts
    assert lead == note == HOSTILE.replace("\x1b", r"\x1b").replace("\u202e", r"\u202e")
    assert title == cell
    assert 50 < len(cell) < 80
    assert "1,000" in more


def test_a_batch_shows_its_first_rows(certified):
    _, batch = certified
    page = shown(batch)
    accepted, explored = int(batch.accepted.sum()), int(batch.explored.sum())
    assert f"Round 3: {accepted} of 200 applicants accepted, {explored} of them" in page.texts[0]
    assert page.tags.count("tr") == 1 + 10
    assert "190 more" in page.text
    assert {"id", "accepted", "region", "score", "propensity"} <= set(page.texts)


def test_a_batch_of_a_million_is_short():
    n = 1_000_000
    batch = fc.Decisions(
        np.arange(n), np.ones(n, bool), np.zeros(n, bool), np.ones(n), np.ones(n), 7
    )
    assert len(batch._repr_html_()) < 20_000
    assert "1,000,000 of them explored; no certificate" in shown(batch).text


def test_a_batch_says_what_is_unlike_the_history(explored):
    unlike = Unlike(NAME, "missing", 200, 200, 0.0, "history", True)
    assert unlike_words(unlike) in shown(replace(explored[1], unlike=(unlike,))).texts


def test_rounds_are_a_tuple_that_shows_as_a_table(explored, tmp_path):
    clf, _ = explored
    rounds = clf.rounds_
    assert rounds == tuple(clf._rounds)
    assert hash(rounds) == hash(tuple(clf._rounds))
    page = shown(rounds)
    assert page.texts[0] == "3 records"
    assert page.tags.count("tr") == 1 + 3
    assert shown(rounds[1:]).tags.count("tr") == 1 + 2
    assert shown(rounds[:0]).tags.count("tr") == 0
    assert shown(Records([*rounds] * 100)).texts[0] == "The last 20 of 300 records"
    fc.save(clf, tmp_path / "kept.zip")
    assert repr(fc.load(tmp_path / "kept.zip").rounds_) == repr(rounds)


def test_a_round_of_algorithm_1_says_what_was_allowed_and_estimated(explored):
    notes = (Note("fit", {"says": HOSTILE}), Note("later", {"n": 3}))
    record = replace(explored[0].rounds_[-1], notes=notes)
    page = shown(replace(record, alpha_exploit=0.0915, estimated_fdr=0.0825))
    assert {"9.15 %", "8.25 %"} <= set(page.texts)
    assert visible(HOSTILE) in page.text
    assert "later: n = 3" in page.text
    assert "–" in shown(replace(record, estimated_fdr=np.nan)).texts


def test_a_certified_round_says_what_is_promised_and_what_is_missing(certified):
    record = replace(certified[0].rounds_[-1], curve=(), notes=(), threshold=8.0)
    pilot = shown(replace(record, status="pilot", log_wealth=2.0))
    assert "25 %" in pilot.texts
    page = shown(replace(record, status="certified", log_wealth=10.0, more_outcomes=99.5))
    assert "125 %" in page.texts
    for part in ("90 %", "15 %", "100 more outcomes"):
        assert part in page.text
    assert "–" in shown(replace(record, threshold=np.inf)).texts


def test_rounds_with_a_certificate_per_group_name_the_group(certified):
    page = shown(certified[0].rounds_)
    assert page.texts[0] == "6 records"
    assert {"group", "B", "pilot"} <= set(page.texts)


def test_a_certified_round_shows_its_curve(certified):
    points = [fc.CurvePoint(bound, 0.5, 1234.5, 0.1, bound > 0.1) for bound in (0.1, 0.15)]
    page = shown(replace(certified[0].rounds_[-1], curve=tuple(points)))
    assert page.tags.count("tr") == 1 + 2
    assert {"10 %", "15 %", "certified", "estimate"} <= set(page.texts)


def test_counts_and_corrections_are_tables(explored):
    clf, batch = explored
    assert NAME in shown(clf.group_counts_).texts
    first = batch.ids[batch.accepted][0]
    known = clf.corrections_
    assert shown(known).texts == ["None yet"]
    correction = fc.Correction(first, 3, None, NAME)
    assert first in shown(Records([correction])).texts
    assert first in shown(correction).texts


def test_a_program_shows_its_promise_and_outcomes(tmp_path, rng):
    X, good, more = applicants(rng, 400)
    clf, url = fc.PartialFeedbackClassifier(random_state=0), f"sqlite:///{tmp_path}/lender.db"
    program = Program.create(url, clf, X, good, accepted=X[:, 0] > 0, name=NAME, **more)
    assert "15 %" in shown(program).text
    X, _, more = applicants(rng, 300)
    batch = program.decide(X, **more)
    accepted = batch.ids[batch.accepted]
    program.observe(accepted[:50], np.zeros(50, int), unlike_expected=True)
    page = shown(program)
    assert NAME in page.text
    assert {
        "300",
        "50",
        rate_text(Outcomes(0, 50, 0, 0).mistakes()),
        f"{accepted.size - 50}",
    } <= set(page.texts)
    assert "RED" in page.text  # the same verdict as `fairchance status`
    assert program.summary()._repr_html_() == program._repr_html_()


@pytest.mark.parametrize(
    "kind",
    [
        *(getattr(decisions, name) for name in decisions.__all__),
        Records,
        Program,
        Summary,
        fc.CertifiedClassifier,
    ],
)
def test_everything_that_users_get_back_is_shown(kind):
    assert hasattr(kind, "_repr_html_")
