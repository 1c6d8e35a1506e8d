"""Rounds that are closed piece by piece: as at once, and never more than a piece at a time."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairchance import CertifiedClassifier, PartialFeedbackClassifier
from fairchance.errors import InputError
from fairchance.ledger.verification.compare import first_other_content
from fairchance.methods import closing
from fairchance.methods.closing import RoundParts
from fairchance.methods.storage import dumps
from fairchance.people.intake import Intake
from methods.certified.known_truth import QUICK

KINDS = ("certified", "beside the lender", "persons and shock", "per group", "blind", "coins")
NEW = {"blind": ["f", "m", "x", "d"]}  # groups that the history lacks


def people(rng, n, kind):
    """Return features and groups of applicants, and what else a policy asks for."""
    X, options = rng.normal(size=(n, 2)), {}
    if kind in ("per group", "blind", "coins"):
        options["sensitive_features"] = rng.choice(NEW.get(kind, ["f", "m"]), n)
    if kind == "beside the lender":
        options["incumbent"] = X[:, 0] > 0.5
    if kind == "persons and shock":
        options["persons"] = rng.integers(0, n // 2, n)
        options["barred"] = rng.random(n) < 0.1
    return X, options


def started(kind, rng):
    make = {
        "coins": lambda: PartialFeedbackClassifier(exploration="coins", random_state=0),
        "per group": lambda: CertifiedClassifier(certify="per_group", learner=QUICK),
        "blind": lambda: CertifiedClassifier(group_mode="blind", learner=QUICK),
        "persons and shock": lambda: CertifiedClassifier(shock=0.01, per_person=2, learner=QUICK),
    }
    classifier = make.get(kind, lambda: CertifiedClassifier(learner=QUICK))()
    X = rng.normal(size=(400, 2))
    good = (rng.random(400) < 1 / (1 + np.exp(-1.5 - 2 * X[:, 0]))).astype(int)
    group = {"sensitive_features": rng.choice(["f", "m"], 400)} if kind in KINDS[3:] else {}
    return classifier.set_params(random_state=7).fit(X, good, accepted=X[:, 0] > -0.5, **group)


def cut(options, rows):
    return {name: values[rows] for name, values in options.items()}


def opened(classifier, kind, n):
    beside = kind == "beside the lender"
    return classifier.open_round(n, incumbent=beside, ramp=0.7 if beside else 1.0)


def close_in_pieces(monkeypatch, classifier, parts, size):
    """Close a round with another size of pieces; return how many rows the largest one had."""
    sizes, join = [], Intake.join

    def counted(self, batches, known=None):
        sizes.append(sum(map(len, batches)))
        return join(self, batches, known)

    with monkeypatch.context() as patch:
        patch.setattr(closing, "PIECE", size)
        patch.setattr(Intake, "join", counted)
        classifier.close_round(parts)
    return max(sizes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_closed_in_pieces_is_closed_as_at_once(kind, rng, monkeypatch):
    """Sums may differ in their last bits, and new groups may come in another order."""
    whole = started(kind, rng)
    pieces, n = copy.deepcopy(whole), 300
    for t in range(3):
        X, options = people(rng, n, kind)
        ids = rng.permutation(n) + 1000 * (t + 1)
        policy = opened(pieces, kind, n)
        parts = [
            policy.decide(X[rows], ids=ids[rows], **cut(options, rows))
            for rows in np.split(rng.permutation(n), np.sort(rng.integers(1, n, 5)))
        ]
        opened(whole, kind, n)
        whole.close_round(parts)
        largest = close_in_pieces(monkeypatch, pieces, parts, 40)
        assert largest <= (50 if kind == "persons and shock" else 40)
        name = first_other_content(dumps(whole), dumps(pieces), 1e-9)
        assert name is None or kind == "blind"
        assert sorted(map(repr, whole.group_counts_)) == sorted(map(repr, pieces.group_counts_))
        accepted = np.concatenate([part.ids[part.accepted] for part in parts])
        good = (rng.random(accepted.size) < 0.9).astype(int)
        for classifier in (whole, pieces):
            classifier.observe(accepted, good)


@settings(max_examples=15)
@given(st.sampled_from(KINDS), st.integers(0, 2**20), st.data())
def test_pieces_do_not_depend_on_how_parts_were_cut(kind, seed, data):
    """To the last bit, as long as the applicants come in the same order."""
    rng = np.random.default_rng(seed)
    one = started(kind, rng)
    other, n = copy.deepcopy(one), 120
    X, options = people(rng, n, kind)
    policy = opened(one, kind, n)
    opened(other, kind, n)
    whole = policy.decide(X, ids=np.arange(n) + 1000, **options)
    size = data.draw(st.integers(1, n))
    ends = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=9)))
    parts = [whole[rows] for rows in np.split(np.arange(n), ends)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closing, "PIECE", size)
        one.close_round([whole])
        other.close_round(parts if "persons" in options else iter(parts))
    assert first_other_content(dumps(one), dumps(other), 0.0) is None


def test_an_applicant_in_two_pieces_is_refused(rng, monkeypatch):
    for kind in ("certified", "coins"):
        classifier = started(kind, rng)
        X, options = people(rng, 60, kind)
        policy = classifier.open_round(60)
        part = policy.decide(X, ids=np.arange(60) + 1000, **options)
        before = dumps(classifier)
        monkeypatch.setattr(closing, "PIECE", 20)
        again = replace(part, applicants=replace(part.applicants))
        with pytest.raises(InputError, match="1007 more than once"):
            classifier.close_round(iter([part, again[np.arange(7, 9)]]))
        assert first_other_content(before, dumps(classifier), 0.0) is None
        classifier.close_round(iter([part]))


def test_persons_need_all_parts_at_once(rng):
    classifier = started("persons and shock", rng)
    X, options = people(rng, 60, "persons and shock")
    part = classifier.open_round(60).decide(X, ids=np.arange(60) + 1000, **options)
    with pytest.raises(InputError, match="list"):
        classifier.close_round(iter([part]))
    assert classifier.close_round([part]).n_people == 60


def test_a_person_is_in_one_piece(rng, monkeypatch):
    classifier = started("persons and shock", rng)
    X, options = people(rng, 400, "persons and shock")
    part = classifier.open_round(400).decide(X, ids=np.arange(400) + 1000, **options)
    monkeypatch.setattr(closing, "PIECE", 50)
    given = RoundParts.of([part[np.arange(100)], part[np.arange(100, 400)]])
    lists = list(closing.pieces(given, part.round))
    persons = [np.concatenate([one.applicants.persons for one in some]) for some in lists]
    assert sum(one.size for one in persons) == 400
    assert (
        np.concatenate([np.unique(one) for one in persons]).size
        == np.unique(part.applicants.persons).size
    )
