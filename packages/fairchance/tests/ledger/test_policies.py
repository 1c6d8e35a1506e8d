"""Policies and certificates are stored as entries, and hold no applicant."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from dataclasses import asdict

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairchance as fc
from cli.calls import call
from fairchance.errors import InputError, LearningWarning
from fairchance.ledger.base import Facts, to_json
from fairchance.ledger.health import check_health, find_check
from fairchance.ledger.policies import read_policy
from fairchance.ledger.program import Program
from fairchance.ledger.replay import Allowed
from fairchance.ledger.sql import Writer
from fairchance.ledger.summary import read_details
from fairchance.ledger.verification.walk import verify
from fairchance.pages.page import PageTable
from fairchance.pages.program import program_page
from fairchance.plot.rows import WITHDRAWN, read_run
from fairchance.words.checks import promise_word
from fairchance.words.rounds import assumed, sentence
from fairchance.words.rounds import withdrawn as withdrawn_words
from ledger.lived_programs import entries, lived, proved
from ledger_worlds import algorithm_1, certified, started


def policies(program):
    """Return the batches of a program with their policies."""
    with program.ledger.reading("main") as reader:
        return [
            (batch, read_policy(reader, batch, Allowed())) for batch in reader.entries(kind="batch")
        ]


def test_a_stored_policy_gives_the_recorded_scores_and_thresholds(place):
    program = lived(place, algorithm_1())
    for (batch, policy), (_, facts) in list(
        zip(policies(program), entries(program, "batch"), strict=True)
    )[1:]:
        f = policy.f
        X = np.frombuffer(b"".join(facts.people.numbers)).reshape(len(facts.people), -1)
        linear = f.likelihood.likelihood
        by_hand = 1 / (1 + np.exp(-(X @ linear.coef + linear.intercept)))
        np.testing.assert_allclose(facts.decisions.score, by_hand, rtol=1e-12)
        assert set(facts.decisions.threshold) == set(f.thresholds)
        known = facts.decisions.exploit
        accepted = by_hand >= f.thresholds[0]
        assert np.array_equal(facts.decisions.accepted[known], accepted[known])
        assert policy.round == batch.says["round"]


def test_what_rounds_have_in_common_is_stored_once(place):
    """A ranking of trees is most of a policy; rounds on it store a small part."""
    program = lived(place, certified(), n_rounds=5, known=0.0)
    sizes = {}
    for batch, facts in entries(program, "batch"):
        base = batch.says["policy"]["base"]
        sizes.setdefault(base is None, []).append(len(facts.payload))
    assert max(sizes[False]) < min(sizes[True]) / 2
    for (_, policy), record in zip(policies(program), program.classifier.rounds_, strict=True):
        assert (policy.round, policy.choices[0].sure_share) == (record.round, record.share)


def arrays_in(payload):
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        return [np.load(io.BytesIO(archive.read(name))) for name in names]


def test_a_stored_policy_holds_no_applicant(place):
    # Trees and bins hold single values (docs/guarantees.md), a linear ranking holds none.
    program = lived(place, certified(learner=LogisticRegression()), n_rounds=3)
    people = [facts.people for _, facts in entries(program) if facts.people is not None]
    features = np.frombuffer(b"".join(row for some in people for row in some.numbers))
    assert features.size > 600

    def holds_people(payload):
        return any(np.isin(array, features).any() for array in arrays_in(payload))

    stored = entries(program, "batch")
    assert stored
    for one, facts in stored:
        # No array has a row per applicant and a column per feature.
        arrays = arrays_in(facts.payload)
        assert all(array.ndim < 2 or array.shape[0] < 60 for array in arrays), one.key
        assert not holds_people(facts.payload), one.key
    program.snapshot()
    *_, (_, state) = entries(program, "snapshot")
    assert holds_people(state.payload)  # as a state of the classifier does


def test_a_past_policy_is_stored_as_data(place):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    good = (rng.random(900) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    accepted = X[:, 1] > 0
    past = LogisticRegression().fit(X[:600], accepted[:600])
    program = Program.create(
        place,
        algorithm_1(strategy=None),
        X[:600],
        good[:600],
        accepted=accepted[:600],
        past_policy=past,
    )
    decided = program.decide(X[600:750])
    np.testing.assert_allclose(decided.score, past.predict_proba(X[600:750])[:, 1], rtol=1e-9)
    program.observe(decided.ids[decided.accepted], good[600:750][decided.accepted])
    again = Program.open(place)
    again.decide(X[750:])
    assert proved(again, relearn=True).n_decisions == 300
    kept = fc.PartialFeedbackClassifier(
        random_state=3, utility=fc.Revenue(gain=200, loss=300), budget=fc.FdrBudget(alpha=0.15)
    ).fit(X[:600], good[:600], accepted=accepted[:600], past_policy=past)
    assert np.array_equal(kept.decide(X[600:750]).accepted, decided.accepted)


def test_past_policies_that_cannot_be_stored(place):
    X = np.random.default_rng(0).normal(size=(100, 2))
    good = (X[:, 0] > 0).astype(int)
    with pytest.raises(InputError):
        Program.create(place, algorithm_1(), X, good, past_policy=lambda X: X[:, 0] > 0)
    with pytest.raises(InputError, match="CertifiedClassifier follows no past policy"):
        Program.create(place, certified(), X, good, past_policy=LogisticRegression())


def certified_life(url, **options):
    classifier = fc.CertifiedClassifier(
        alpha=0.4, delta=0.2, horizon=6, random_state=3, maturity=0, **options
    )
    return lived(url, classifier, n_rounds=8, n_batch=400)


@pytest.fixture(scope="module")
def reached(tmp_path_factory):
    """Return a program whose rounds have certificates."""
    program = certified_life(f"sqlite:///{tmp_path_factory.mktemp('reached')}/ledger.db")
    program.ledger.compact()
    return program


@pytest.fixture
def copied(reached, tmp_path):
    """Return a copy of it that may be changed."""
    shutil.copy(reached.ledger.engine.url.database, tmp_path / "ledger.db")
    return Program.open(f"sqlite:///{tmp_path}/ledger.db")


def test_certificates_are_recorded_with_their_evidence(reached):
    found = entries(reached, "certificate")
    rounds = {}
    for record in reached.classifier.rounds_:
        if record.status == "certified":
            rounds.setdefault((record.ladder, record.share), record)
    assert len(found) == len(rounds) > 0
    for (one, _), record in zip(found, rounds.values(), strict=True):
        plain = json.loads(to_json(asdict(record)))
        says = one.says
        assert {name: says[name] for name in ("share", "log_wealth", "round", "group")} == {
            name: plain[name] for name in ("share", "log_wealth", "round", "group")
        }
        assert says["log_wealth"] >= says["threshold"]
        assert (says["alpha"], says["delta"], says["what"]) == (0.4, 0.2, "granted")
    found = proved(reached, relearn=True)
    assert found.n_learned_again == found.n_decisions > 0


def test_ladders_are_stored_without_evidence(reached):
    assert all(policy.choices[0].ladder.n_tested == 0 for _, policy in policies(reached))


def correct_one(program, number):
    """Correct the first known outcome of a round, which had been tested."""
    batch, facts = entries(program, "batch")[number - 1]
    yes = np.array(facts.people.applications, np.int64)[facts.decisions.accepted]
    states = {
        person: state
        for _, one in entries(program, "outcomes")
        for person, state in zip(one.outcomes.persons, one.outcomes.states, strict=True)
    }
    first = batch.says["rows"]["first"] + int(np.flatnonzero(facts.decisions.accepted)[0])
    with pytest.warns(LearningWarning, match="round 9"):
        program.observe(yes[:1], [0 if states[first] == "good" else 1])


def test_a_dropped_certificate_is_recorded(copied):
    program = copied
    granted = [one.key for one, _ in entries(program, "certificate")]
    assert granted
    correct_one(program, 6)
    assert program.classifier._engines[0].stage.restarts == 1
    dropped, _ = entries(program, "certificate")[-1]
    assert dropped.says["what"] == "dropped"
    assert dropped.says["certificates"] == granted
    assert (dropped.says["round"], dropped.says["why"]) == (8, "correction")
    proved(program, relearn=True)


@pytest.mark.parametrize("recorded", ["nothing", "too few", "too late"])
def test_an_unrecorded_drop_of_a_certificate_is_detected(copied, monkeypatch, recorded):
    program, append, late = copied, Writer.append, []

    def other(self, kind, header, facts, **options):
        if kind == "certificate" and header["what"] == "dropped":
            late.append((header, options))
            if recorded != "too few":
                return None
            header = header | {"certificates": header["certificates"][1:]}
        return append(self, kind, header, facts, **options)

    batch, facts = entries(program, "batch")[-3]
    row = int(np.flatnonzero(facts.decisions.accepted)[0])
    name, person = int(facts.people.applications[row]), batch.says["rows"]["first"] + row
    states = {
        person: state
        for _, one in entries(program, "outcomes")
        for person, state in zip(one.outcomes.persons, one.outcomes.states, strict=True)
    }
    with monkeypatch.context() as patched:
        patched.setattr(Writer, "append", other)
        with pytest.warns(LearningWarning, match="round 9"):
            program.observe([name], [0 if states[person] == "good" else 1])
    assert len(late) == 1
    if recorded == "too late":
        X, group = np.zeros((1, program.classifier.n_features_in_)), ["A"]
        with monkeypatch.context() as patched:
            patched.setattr("fairchance.ledger.program.record_certificates", lambda *_a, **_o: None)
            program.decide(X, sensitive_features=group, ids=[10_000_000])
        (header, options), *_ = late
        with program.ledger.writing("main") as writer:
            writer.append("certificate", header, Facts(), **options)
    assert verify(program.ledger).ok
    problem = verify(program.ledger, relearn=True).problem
    if recorded == "too few":
        assert problem.endswith(
            f"the certificates that had to be dropped are {late[0][0]['certificates']}."
        )
    else:
        assert "had to be dropped, and that is not recorded" in problem


def test_a_false_drop_of_a_certificate_is_detected(copied):
    granted = [one.key for one, _ in entries(copied, "certificate")]
    header = {"what": "dropped", "certificates": granted, "group": None, "round": 8, "why": "none"}
    with copied.ledger.writing("main") as writer:
        writer.append("certificate", header, Facts(), by="t", key="dropped 0.1")
    problem = verify(copied.ledger, relearn=True).problem
    assert problem.endswith(
        "(certificate 'dropped 0.1'): the certificates that had to be dropped are []."
    )


def test_a_false_certificate_is_detected(copied):
    """A certificate with the evidence of the last round, and one with other evidence."""
    *_, (last, _) = entries(copied, "batch")
    record = last.says["rounds"][0]
    forged = entries(copied, "certificate")[0][0].says
    forged |= {name: record[name] for name in ("share", "threshold", "round")}
    with copied.ledger.writing("main") as writer:
        header = forged | {"log_wealth": record["log_wealth"]}
        writer.append("certificate", header, Facts(), by="t", key="new")
    assert verify(copied.ledger).ok
    found = verify(copied.ledger, relearn=True)
    assert "(certificate 'new'): no round depends on it" in found.problem
    with copied.ledger.writing("main") as writer:
        header = forged | {"log_wealth": record["log_wealth"] + 1}
        writer.append("certificate", header, Facts(), by="t", key="newer")
    found = verify(copied.ledger)
    assert "(certificate 'newer'): its log_wealth differs from that of the round" in found.problem


def test_a_missing_certificate_is_detected(place, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("fairchance.ledger.program.record_certificates", lambda *_a, **_o: None)
        program = certified_life(place)
    assert verify(program.ledger).ok
    found = verify(program.ledger, relearn=True)
    assert "was reached and is not recorded" in found.problem


def test_rounds_that_were_certified_on_a_corrected_outcome_are_withdrawn(copied, tmp_path):
    """Each round's outcomes are known before the next one, so rounds 7 and 8 rest on round 6."""
    before = [row.round for row in copied.summary().rounds if row.certified]
    assert {7, 8} <= {*before}
    correct_one(copied, 6)
    summary = copied.summary()
    withdrawn = {row.round: row.withdrawn for row in summary.rounds if row.withdrawn}
    assert withdrawn == {7: (None,), 8: (None,)}
    assert [row.round for row in summary.rounds if row.certified] == before
    url = f"sqlite:///{tmp_path}/ledger.db"
    status = json.loads(call("status", url, "--json").stdout)
    assert status["withdrawn_rounds"] == [7, 8]
    assert status["certified_rounds"] == [number for number in before if number < 7]
    assert status["rounds"][-1]["withdrawn"] == [None]
    (check,) = (one for one in status["checks"] if one["question"] == "certificate")
    assert check["facts"]["dropped"]["withdrawn"] == [7, 8]
    assert promise_word(find_check(check_health(summary), "certificate")) == "no longer"
    said = sentence(withdrawn_words([7, 8]))
    page = program_page(summary, read_details(copied.ledger, summary), 180.0)
    (told,) = (one for one in page.sections if one.id == "certificate")
    assert said in told.parts
    assert sentence(assumed(0)) in told.parts
    parts = (part for section in page.sections for part in section.parts)
    (rounds,) = (p for p in parts if isinstance(p, PageTable) and p.title == "Rounds")
    shown = [*rounds.titles].index("Status")
    assert [row[shown] for row in rounds.rows][-2:] == ["withdrawn"] * 2
    assert [row["name"] for row in read_run(summary).spans][-2:] == [WITHDRAWN] * 2
    assert call("audit", url, "-o", tmp_path / "pack").exit_code == 0
    assert said in (tmp_path / "pack" / "model_card.txt").read_text()
    assert sentence(assumed(0)) in (tmp_path / "pack" / "model_card.txt").read_text()


def test_rounds_that_are_opened_share_a_policy(tmp_path):
    program, _, _ = started(f"sqlite:///{tmp_path}/ledger.db", certified())
    for _ in range(3):
        program.open_round()
        program.close_round()
    with program.ledger.reading("main") as reader:
        first, *others = reader.entries(kind="round")
        assert [entry.says["policy"]["base"] for entry in others] == [first.number] * 2
    assert program.verify().ok
