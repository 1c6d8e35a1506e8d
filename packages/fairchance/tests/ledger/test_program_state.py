"""The state in memory always is that of the ledger, and opening is quick."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairchance as fc
from fairchance.core.sizes import unzipped
from fairchance.errors import InputError, LearningWarning, LedgerError
from fairchance.learners.watch import watching_fits
from fairchance.ledger.program import Program
from fairchance.ledger.sql import SqlLedger
from fairchance.ledger.verification.walk import verify
from fairchance.methods.storage import dumps
from ledger.lived_programs import entries, lived
from ledger_worlds import algorithm_1, certified, same, started


@pytest.fixture
def place(tmp_path):
    return tmp_path / "ledger.db"


def decide(program, batch, **options):
    return program.decide(batch.people.X, sensitive_features=batch.people.group, **options)


def observe(program, batch, decided):
    program.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])


def put_back(program, place: Path, content: bytes) -> None:
    """Replace a ledger by a copy, as a restored backup does."""
    program.ledger.close()
    for end in ("-wal", "-shm"):
        Path(f"{place}{end}").unlink(missing_ok=True)
    place.write_bytes(content)


def copy_of(program, place: Path) -> bytes:
    program.ledger.close()
    return place.read_bytes()


@pytest.mark.parametrize("n_since", [0, 1, 2])
@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_a_backup_restored_under_an_open_program(place, make, n_since):
    url = f"sqlite:///{place}"
    program, twin, (one, two, three, *others) = started(url, make())
    first = decide(program, one)
    assert same(first, twin.decide(one.people.X, sensitive_features=one.people.group))
    older = copy_of(program, place)
    observe(program, one, first)
    decide(program, two)
    put_back(program, place, older)
    for batch in others[:n_since]:  # so that another chain is as long, or longer
        assert same(
            decide(Program.open(url), batch),
            twin.decide(batch.people.X, sensitive_features=batch.people.group),
        )
    found = decide(program, three)
    assert found.round == n_since + 2
    assert same(found, twin.decide(three.people.X, sensitive_features=three.people.group))
    observe(program, one, first)
    assert verify(url).ok
    assert verify(url, relearn=True).ok


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_changes_of_the_copied_classifier_have_no_effect(url, make):
    program, twin, (one, two, three, *_) = started(url, make())
    for batch in (one, two):
        shown = program.classifier
        decided = shown.decide(three.people.X, sensitive_features=three.people.group)
        shown.observe(decided.ids[decided.accepted], three.outcome[decided.accepted])
        ours = decide(program, batch)
        assert same(ours, twin.decide(batch.people.X, sensitive_features=batch.people.group))
        observe(program, batch, ours)
        observe(twin, batch, ours)
    assert len(program.classifier.rounds_) == 2
    assert verify(url).ok


def test_threads_that_share_a_program_take_turns(place):
    program, _, batches = started(f"sqlite:///{place}", algorithm_1(), n_batch=50)

    def work(at):
        shown = program.classifier
        decided = decide(program, batches[at], ids=np.arange(50) + 10**6 * (at + 1))
        shown.decide(batches[at].people.X, sensitive_features=batches[at].people.group)
        observe(program, batches[at], decided)
        return decided.round

    with ThreadPoolExecutor(3) as threads:
        rounds = sorted(threads.map(work, range(6)))
    assert rounds == [1, 2, 3, 4, 5, 6]
    assert verify(program.ledger, relearn=True).ok


def test_if_warnings_are_errors_a_call_that_raises_records_nothing(place):
    url = f"sqlite:///{place}"
    program, _, batches = started(url, certified(alpha=0.5, delta=0.3), n_batch=400)
    for batch in batches[:2]:
        decided = decide(program, batch)
        observe(program, batch, decided)
    decide(program, batches[2])
    wrong = decided.ids[decided.accepted][:1]
    outcome = 1 - batch.outcome[decided.accepted][:1]
    before = program.checkpoint()
    with warnings.catch_warnings():
        warnings.simplefilter("error", LearningWarning)
        with pytest.raises(LearningWarning, match="again"):
            program.observe(wrong, outcome)
    assert program.checkpoint() == before
    with pytest.warns(LearningWarning, match="again"):
        program.observe(wrong, outcome)
    assert program.checkpoint().number > before.number
    assert verify(url, relearn=True).ok


def test_a_call_that_fails_changes_nothing_in_memory(url, monkeypatch):
    program, twin, (one, *_) = started(url, algorithm_1())
    group = one.people.group

    def fail(*args, **options):
        raise RuntimeError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr("fairchance.ledger.sql.Writer._insert", fail)
        with pytest.raises(RuntimeError, match="the disk is gone"):
            program.decide(one.people.X, sensitive_features=group, batch="b")
    assert same(
        program.decide(one.people.X, sensitive_features=group, batch="b"),
        twin.decide(one.people.X, sensitive_features=group),
    )


def test_opening_replays_only_entries_after_the_last_snapshot(url, monkeypatch):
    program, _, batches = started(url, certified(), n_batch=50)
    for one in batches[:5]:
        program.decide(one.people.X, sensitive_features=one.people.group)
    replayed = []
    close = fc.CertifiedClassifier.close_round
    monkeypatch.setattr(
        fc.CertifiedClassifier,
        "close_round",
        lambda self, parts: replayed.append(1) or close(self, parts),
    )
    assert len(Program.open(url).classifier.rounds_) == 5
    assert len(replayed) == 5  # the first round ranks by what the history taught
    program.snapshot()
    replayed.clear()
    assert len(Program.open(url).classifier.rounds_) == 5
    assert replayed == []


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_opening_never_fits_a_model(url, make):
    """Not even if a call died right after it: a state is durable with what it fitted."""
    program, _, batches = started(url, make(), n_batch=100)
    refused = []

    def opens():
        with watching_fits() as fits:
            Program.open(url)
        refused.append(fits.n)

    for batch in batches[:-1]:
        decided = decide(program, batch)
        opens()
        observe(program, batch, decided)
        opens()
    program.erase(decided.ids[:1], "asked", early=True)
    opens()
    assert refused == [0] * 11
    assert len(entries(program, "snapshot")) >= 3  # of the history, a ranking and the erasure


def test_a_ledger_without_the_state_of_a_fit_says_so(url, monkeypatch):
    program, _, batches = started(url, algorithm_1(), n_batch=100)
    observe(program, batches[0], decide(program, batches[0]))
    monkeypatch.setattr(Program, "_store_state", lambda *_: None)
    decide(program, batches[1])
    with pytest.raises(LedgerError, match="fitted a model"):
        Program.open(url)


def test_a_state_is_stored_before_much_has_to_be_replayed(url, monkeypatch):
    program, _, batches = started(url, certified(), n_batch=60)
    for batch in batches[:2]:
        decide(program, batch)
    before = len(entries(program, "snapshot"))
    monkeypatch.setattr("fairchance.ledger.replay._SECOND", 1500)  # two entries and their people
    for batch in batches[2:6]:
        decide(program, batch)
    assert len(entries(program, "snapshot")) == before + 2


@pytest.mark.parametrize(
    "classifier",
    [
        algorithm_1(group_as_feature=True),
        algorithm_1(split="cross", learner=make_pipeline(StandardScaler(), LogisticRegression())),
        algorithm_1(exploration="coins", strategy=fc.Uniform()),
        certified(alpha=0.4, delta=0.3),
        certified(certify="per_group", group_as_feature=True),
    ],
    ids=repr,
)
def test_a_program_reads_from_the_ledger_what_states_leave_out(place, classifier, monkeypatch):
    """Each call is made by a program that was just opened; the twin keeps all features."""
    monkeypatch.setattr("fairchance.ledger.replay._SECOND", 0)  # a state after each call
    url = f"sqlite:///{place}"
    _, twin, batches = started(url, classifier, n_batch=300)
    trusted = ["numpy.dtype"]
    for batch in batches:
        decided = decide(Program.open(url, trusted=trusted), batch)
        assert same(decided, decide(twin, batch))
        observe(Program.open(url, trusted=trusted), batch, decided)
        observe(twin, batch, decided)
    program = Program.open(url, trusted=trusted)
    program.erase(decided.ids[:90], "asked", early=True)
    twin.forget(decided.ids[:90])
    apart = Program.open(url, trusted=trusted).classifier
    shown = {"sensitive_features": batch.people.group, "ids": np.arange(300) + 10**6}
    expected = twin.decide(batch.people.X, **shown)
    assert same(apart.decide(batch.people.X, **shown), expected)
    assert same(Program.open(url, trusted=trusted).decide(batch.people.X, **shown), expected)
    assert verify(url, trusted=trusted, relearn=True).ok


def test_stored_states_hold_no_features_of_past_rounds(place):
    url = f"sqlite:///{place}"
    program, _, batches = started(url, algorithm_1())
    rows = []
    for batch in batches:
        decided = decide(program, batch)
        observe(program, batch, decided)
        rows += [row.tobytes() for row in batch.people.X[decided.accepted]]
    program.snapshot()
    *_, (_, facts) = entries(program, "snapshot")
    stored, complete = unzipped(facts.payload, "it"), unzipped(dumps(program.classifier), "it")
    assert not any(row in file for file in stored.values() for row in rows)
    assert all(any(row in file for file in complete.values()) for row in rows)


def work_of(url, doing):
    """Return how many hundreds of steps SQLite takes while a function uses a program."""
    program = Program.open(url)
    program._state = None
    program.ledger.engine.dispose()
    steps = [0]

    def count():
        steps[0] += 1

    @sa.event.listens_for(program.ledger.engine, "connect")
    def listen(connection, _record):
        connection.set_progress_handler(count, 100)

    doing(program)
    return steps[0]


def opened(program):
    with program.reading() as view:
        assert view.classifier.rounds_


def test_opening_reads_only_the_last_state(tmp_path):
    opening, reading = [], []
    for n_rounds in (5, 20):
        url = f"sqlite:///{tmp_path}/{n_rounds}.db"
        lived(url, algorithm_1(), n_rounds=n_rounds, n_batch=200, known=0.1).snapshot()
        opening.append(work_of(url, opened))
        reading.append(work_of(url, entries))
    assert reading[1] > 2 * reading[0]  # what reading everything takes
    assert opening[1] - opening[0] < (reading[1] - reading[0]) / 20
    assert max(opening) < reading[0] / 10


def test_a_view_reads_one_moment_and_needs_one_transaction(place, monkeypatch):
    url = f"sqlite:///{place}"
    started(url, algorithm_1(), n_batch=50)
    n_transactions = []
    reading = SqlLedger.reading
    monkeypatch.setattr(
        SqlLedger, "reading", lambda *a, **o: n_transactions.append(1) or reading(*a, **o)
    )
    program = Program.open(url, load=False)
    assert not n_transactions
    with program.reading() as view:
        assert view.shape.id_kind == "i"
        assert view.about == {}
        assert view.standing([0, 10**6]).persons.tolist() == [0, -1]
        assert view.summary().total("n_people") == 0
        assert len(view.classifier.rounds_) == 0
        assert len(n_transactions) == 1


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_a_program_goes_on_after_it_was_read(place, make):
    program, twin, (one, two, *_) = started(f"sqlite:///{place}", make(), n_batch=50)
    with program.reading() as view:
        assert len(view.classifier.rounds_) == 0
        first = decide(program, one)  # as another thread might
        assert view.reader.entry("batch", "#4") is None
    assert same(first, twin.decide(one.people.X, sensitive_features=one.people.group))
    with program.reading() as view, pytest.raises(InputError):
        view.reasons(first.ids[first.accepted])
    second = decide(program, two)
    assert same(second, twin.decide(two.people.X, sensitive_features=two.people.group))


def test_a_program_that_does_not_exist_raises_at_its_first_use(place):
    url = f"sqlite:///{place}"
    started(url, algorithm_1(), n_batch=20)
    program = Program.open(url, "loans", load=False)
    with pytest.raises(LedgerError, match="'loans'"), program.reading():
        pass
    with pytest.raises(LedgerError, match="'loans'"):
        program.snapshot()
