"""People of cells who are forgotten: counts are everybody else's, and nothing of them is left."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from methods.finite.person_by_person import PersonByPerson
from methods.finite.small_domain import DOMAIN, PAST, draw, fitted
from secondlook import FdrBudget, Revenue
from secondlook.errors import InputError, LearningWarning, UnknownIdError
from secondlook.methods.finite import FiniteClassifier, NormalisedG
from secondlook.methods.finite.ledger import Ledger
from secondlook.methods.storage import dumps, loads
from secondlook.people.ids import id_bits

N_CELLS = 3
WORD = "a-word-of-their-own"


def content(classifier):
    """Return everything that is saved, unpacked; numpy keeps words in four bytes a letter."""
    with zipfile.ZipFile(io.BytesIO(dumps(classifier))) as archive:
        files = b"".join(archive.read(name) for name in archive.namelist())
    return files.replace(b"\0", b"")


class Names:
    """A ledger as a dictionary: cell, and for the accepted an outcome, -1 while none is known."""

    def __init__(self):
        self.people = {}

    def counts(self, value):
        cells = [cell for cell, outcome in self.people.values() if outcome == value]
        return np.bincount(cells, minlength=N_CELLS).tolist()


@given(seed=st.integers(0, 10_000), words=st.booleans())
@settings(max_examples=15, deadline=None)
def test_a_ledger_forgets_as_a_dictionary_does(seed, words):
    rng = np.random.default_rng(seed)
    ledger, slow, free = Ledger(), Names(), 0
    heads = np.zeros(N_CELLS, int)
    for _ in range(6):
        ids = free + (np.arange(5) if rng.random() < 0.5 else rng.permutation(9)[:5])
        free += 9
        gone = [one for one in range(free) if str(one) not in slow.people]
        if gone and rng.random() < 0.4:  # a name that was forgotten may come again
            ids = np.unique(np.append(ids, rng.choice(gone)))
        accepted, cell = rng.random(ids.size) < 0.6, rng.integers(N_CELLS, size=ids.size)
        names = ids.astype(str) if words else ids
        ledger.check_new(names, id_bits(names))
        ledger.record(names, id_bits(names), accepted, cell)
        heads += np.bincount(cell, minlength=N_CELLS)
        slow.people |= {
            str(one): (at, -1 if yes else None)
            for one, at, yes in zip(ids.tolist(), cell.tolist(), accepted, strict=True)
        }
        pending = [int(one) for one, (_, outcome) in slow.people.items() if outcome == -1]
        told = [one for one in pending if rng.random() < 0.5]
        outcome = rng.integers(2, size=len(told)).astype(np.int8)
        if told:
            names = np.array(told).astype(str) if words else np.array(told)
            ledger.observe(names, outcome, N_CELLS)
            for one, good in zip(told, outcome.tolist(), strict=True):
                slow.people[str(one)] = slow.people[str(one)][0], good
        before = slow.counts(1), slow.counts(0)
        lost = [one for one in slow.people if rng.random() < 0.3]
        names = np.array(lost, str) if words else np.array(lost, np.int64)
        if lost:
            more = ledger.forget(np.concatenate([names, names]), N_CELLS)
            heads += more[0]
            for one in lost:
                del slow.people[one]
            after = slow.counts(1), slow.counts(0)
            assert [(a - b).tolist() for a, b in zip(after, np.array(before), strict=True)] == [
                one.tolist() for one in more[1:]
            ]
            with pytest.raises(UnknownIdError, match="are not known"):
                ledger.forget(names[:1], N_CELLS)
            with pytest.raises(UnknownIdError, match="never decided on"):
                ledger.observe(names[:1], np.array([1], np.int8), N_CELLS)
        assert [one.tolist() for one in ledger.outcomes(N_CELLS)] == [
            slow.counts(1),
            slow.counts(0),
        ]
        cells = [cell for cell, _ in slow.people.values()]
        assert heads.tolist() == np.bincount(cells, minlength=N_CELLS).tolist()
        for one in list(slow.people)[:3]:
            name = np.array([one] if words else [int(one)])
            with pytest.raises(InputError, match="decided on before"):
                ledger.check_new(name, id_bits(name))


class Forgetful(PersonByPerson):
    """The box of Algorithm 1 with a list of people who can be struck off it."""

    def __init__(self, *args):
        self.people, self.told = [], []  # (name, cell); (name, cell, outcome)
        super().__init__(*args)

    applied = property(lambda self: [cell for _, cell in self.people], lambda self, _: None)
    seen = property(lambda self: [one[1:] for one in self.told], lambda self, _: None)

    def decide(self, cells):
        """``cells`` are pairs of a name and a cell here."""
        self.people += cells
        return super().decide([cell for _, cell in cells])

    def forget(self, names):
        lost = {cell for name, cell, _ in self.told if name in names}
        self.people = [one for one in self.people if one[0] not in names]
        self.told = [one for one in self.told if one[0] not in names]
        self.exploit -= lost - {cell for _, cell, _ in self.told}


def rounds_with_forgetting(seed, n_rounds, share):
    """Yield the classifier, the slow one and what both decided; some are forgotten every time."""
    rng = np.random.default_rng(seed)
    budget = FdrBudget(alpha=0.15, exploit=0.1, slack=0.005)
    sizes = np.array([1, 2, 3, 1, 2, 1, 1, 4.0])
    classifier = FiniteClassifier(
        Revenue(gain=1, loss=2.5),
        budget,
        NormalisedG(threshold=0.25),
        lambda X, score, group: sizes,
        gap=0,
        random_state=seed,
    )
    slow = Forgetful(PAST.tolist(), 0.25, budget, lambda cell: sizes[cell], 2.5)
    people, good = draw(rng, 100)
    cells = DOMAIN.cell_of(people)
    taken = PAST[cells] > 0
    classifier.fit(
        people.X,
        good,
        accepted=taken,
        sensitive_features=people.group,
        domain=(DOMAIN.X, DOMAIN.group),
        past_policy=PAST,
    )
    slow.people = list(enumerate(cells.tolist()))
    slow.told = [(i, int(cells[i]), int(good[i])) for i in np.flatnonzero(taken).tolist()]
    for _ in range(n_rounds):
        people, good = draw(rng, 60)
        cells = DOMAIN.cell_of(people)
        batch = classifier.decide(people.X, sensitive_features=people.group)
        found = slow.decide(list(zip(batch.ids.tolist(), cells.tolist(), strict=True)))
        yield classifier, slow, batch, found
        yes = batch.accepted
        classifier.observe(batch.ids[yes], good[yes])
        shown = batch.ids[yes].tolist(), cells[yes].tolist(), good[yes].tolist()
        slow.told += list(zip(*shown, strict=True))
        known = np.array([name for name, _ in slow.people])
        gone = known[rng.random(known.size) < share]
        classifier.forget(gone)
        slow.forget(set(gone.tolist()))


@pytest.mark.filterwarnings("ignore:No cell of these people")
@pytest.mark.parametrize("seed", range(3))
def test_the_same_rounds_as_the_box_without_the_forgotten(seed):
    left = 0
    for classifier, slow, batch, (f, n_explore) in rounds_with_forgetting(seed, 8, share=0.6):
        policy, t = classifier.policies_[-1], batch.round
        assert set(np.flatnonzero(policy.exploit)) == slow.exploit, t
        assert set(np.flatnonzero(policy.accepts)) == f, t
        assert batch.explored.sum() == n_explore, t
        counted = np.bincount(slow.applied, minlength=8)
        assert classifier.counts_.applicants.tolist() == counted.tolist()
        assert classifier.n_outcomes_ == len(slow.seen)
        if t > 1:
            record = classifier.rounds_[-1]
            estimates = record.estimated_utility, record.estimated_fdr, record.selection_rate
            assert estimates == pytest.approx(slow.estimates), t
        regions = [one.exploit for one in classifier.policies_[-2:]]
        left += int((regions[0] & ~regions[-1]).sum())
    kept = [one[0] for one in rounds_with_forgetting(seed, 8, share=0.0)]
    assert repr(kept[-1].rounds_) != repr(classifier.rounds_)  # it is another run
    assert kept[-1].n_outcomes_ > 2 * classifier.n_outcomes_
    assert left  # some cell lost all of its outcomes, and was explored again


def cooks_and_bakers(rng, n, odd=0):
    """Words as features; the first ``odd`` people are alone in having theirs."""
    job = rng.choice(["baker", "cook"], n).astype(object)
    home = rng.integers(3, size=n)
    job[:odd] = WORD
    good = (rng.random(n) < np.where(job == "cook", 0.97, 0.7)).astype(int)
    return np.column_stack([job, home.astype(object)]), good, job


def test_a_cell_of_nobody_else_goes_with_its_words(rng):
    X, good, job = cooks_and_bakers(rng, 400, odd=3)
    group = rng.choice(["a", "b"], 400)
    classifier = FiniteClassifier(random_state=0)
    accepted = (job == "cook") | (np.arange(400) == 1)
    classifier.fit(X, good, accepted=accepted, sensitive_features=group)
    gone = [0, 1, 2]
    for _ in range(3):
        X, good, _ = cooks_and_bakers(rng, 200, odd=4)
        group = rng.choice(["a", "b"], 200)
        batch = classifier.decide(X, sensitive_features=group)
        classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
        gone += batch.ids[:4].tolist()
    n_cells, odd = len(classifier.counts_.applicants), classifier.cells_[0][:, 0] == WORD
    others = [
        {(*map(str, x), z): row for x, z, *row in zip(*classifier.cells_, *values, strict=True)}
        for values in (
            (classifier.counts_.applicants, classifier.counts_.good, classifier.coverage_),
            (classifier.policies_[-1].score, classifier.policies_[-1].acceptance),
        )
    ]
    assert WORD.encode() in content(classifier)
    classifier.forget(gone)
    assert WORD.encode() not in content(classifier)
    assert len(classifier.counts_.applicants) == n_cells - odd.sum() < n_cells
    for before, values in zip(
        others,
        (
            (classifier.counts_.applicants, classifier.counts_.good, classifier.coverage_),
            (classifier.policies_[-1].score, classifier.policies_[-1].acceptance),
        ),
        strict=True,
    ):
        after = zip(*classifier.cells_, *values, strict=True)
        now = {(*map(str, x), z): row for x, z, *row in after}
        assert now == {cell: row for cell, row in before.items() if cell[0] != WORD}
    again = loads(dumps(classifier))
    X, good, _ = cooks_and_bakers(rng, 200, odd=2)
    one, other = (clf.decide(X, sensitive_features=group) for clf in (classifier, again))
    assert np.array_equal(one.accepted, other.accepted)
    assert np.array_equal(one.propensity, other.propensity)
    assert not one.exploit[:2].any()  # their cells are new again
    yes = one.ids[one.accepted]
    classifier.observe(yes, good[one.accepted])


def test_people_who_stay_keep_their_slots_when_cells_go(rng):
    """Outcomes that come after cells were renumbered are counted where their people are."""
    cell = np.concatenate([[0], np.arange(1, 6).repeat(40)])
    classifier = FiniteClassifier(random_state=0).fit(cell, np.arange(201) % 25 > 0)
    batch = classifier.decide(cell)
    assert classifier.policies_[0].exploit.all()
    forgotten = [0, int(batch.ids[0])]
    classifier.forget(forgotten)
    assert len(classifier.counts_.applicants) == 5
    before = classifier.counts_
    who = np.flatnonzero(batch.accepted & (cell == 3))
    good = rng.integers(2, size=who.size)
    classifier.observe(batch.ids[who], good)
    more = classifier.counts_.good - before.good
    assert more.tolist() == [0, 0, good.sum(), 0, 0]
    assert who.size > 0


def test_cells_of_the_domain_stay():
    classifier = fitted(np.random.default_rng(0), n=100)
    classifier.forget(np.arange(100))
    assert classifier.counts_.applicants.tolist() == [0] * 8
    people, _ = draw(np.random.default_rng(1), 40)
    batch = classifier.decide(people.X, sensitive_features=people.group)
    assert np.array_equal(batch.exploit, PAST[DOMAIN.cell_of(people)] > 0)  # f_0 is as it was
    assert len(classifier.counts_.applicants) == 8


@pytest.mark.parametrize(("least", "explored_again"), [(1, True), (0, False)])
def test_a_cell_whose_outcomes_are_forgotten_is_explored_again(rng, least, explored_again):
    cell = np.repeat([0, 1], 200)
    good = np.where(cell == 0, rng.random(400) < 0.97, rng.random(400) < 0.2).astype(int)
    classifier = FiniteClassifier(min_outcomes=least, random_state=0).fit(cell, good)
    batch = classifier.decide(cell)
    classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
    assert not classifier.accepts([1])[0]
    classifier.forget(np.flatnonzero(cell == 1))  # of the history; those of the batch are rejected
    assert classifier.counts_.outcomes[1] == 0
    batch = classifier.decide(cell)
    assert (~batch.exploit[cell == 1]).all() == explored_again
    assert (batch.propensity[cell == 1] > 0).all() == explored_again


def test_it_says_so_when_no_outcome_is_left(rng):
    cell = np.repeat([0, 1], 200)
    good = (rng.random(400) < 0.95).astype(int)
    classifier = FiniteClassifier(random_state=0).fit(cell, good)
    classifier.decide(cell)
    classifier.forget(np.arange(400))
    with pytest.warns(LearningWarning, match="fit again where outcomes were forgotten"):
        batch = classifier.decide(cell)
    assert batch.accepted.sum() <= 1  # carried over from the round before


def test_whom_nobody_knows_nobody_can_forget(rng):
    classifier = fitted(rng)
    people, good = draw(rng, 100)
    batch = classifier.decide(people.X, sensitive_features=people.group)
    before = content(classifier)
    with pytest.raises(UnknownIdError, match=r"1 of 2 ids are not known, first 1000000: .* nobody"):
        classifier.forget([int(batch.ids[0]), 10**6])
    assert content(classifier) == before
    assert classifier.forget([]) is classifier
    yes = batch.ids[batch.accepted][:1]
    classifier.observe(yes, good[batch.accepted][:1])
    classifier.correct(yes, 1 - good[batch.accepted][:1])
    assert [one.id for one in classifier.corrections_] == yes.tolist()
    counts = classifier.group_counts_
    classifier.forget(np.concatenate([yes, yes]))
    assert classifier.corrections_ == ()
    assert classifier.group_counts_ == counts
    with pytest.raises(UnknownIdError, match="are not known"):
        classifier.forget(yes)
    with pytest.raises(UnknownIdError, match="were never decided on"):
        classifier.observe(yes, [1])
    with pytest.raises(InputError, match="ids must be integers"):
        classifier.forget(["x"])


def test_an_outcome_is_taken_back_and_told_again(rng):
    ours, twin = fitted(np.random.default_rng(0)), fitted(np.random.default_rng(0))
    people, good = draw(rng, 200)
    batch = ours.decide(people.X, sensitive_features=people.group)
    twin.decide(people.X, sensitive_features=people.group)
    yes, good = batch.ids[batch.accepted], good[batch.accepted]
    ours.observe(yes, good).withdraw(np.append(yes[:40], yes[:3]))
    twin.observe(yes[40:], good[40:])
    assert ours.counts_.good.tolist() == twin.counts_.good.tolist()
    assert ours.counts_.bad.tolist() == twin.counts_.bad.tolist()
    with pytest.raises(InputError, match="recorded already"):
        ours.observe(yes[:1], good[:1])
    ours.correct(yes[:20], good[:20])
    assert [one.before for one in ours.corrections_] == [None] * 20
    assert ours.n_outcomes_ == twin.n_outcomes_ + 20
    with pytest.raises(UnknownIdError, match="were rejected"):
        ours.withdraw(batch.ids[~batch.accepted][:1])
