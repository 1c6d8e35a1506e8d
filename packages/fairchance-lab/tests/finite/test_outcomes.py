"""FiniteClassifier: late, wrong, withdrawn and forgotten outcomes."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from fairchance import FdrBudget, OutcomeNoise, Revenue, SelectionRateParity
from fairchance.errors import InputError, LearningWarning, UnknownIdError
from fairchance.methods.storage import dumps, loads
from fairchance_lab.finite import CountedOutcomes, FiniteClassifier
from finite.small_domain import DOMAIN, PAST, decide, draw, fitted

GOOD = np.array([0.97, 0.9, 0.8, 0.93, 0.6])


def applicants(rng, n):
    cell = rng.integers(5, size=n)
    return cell, (rng.random(n) < GOOD[cell]).astype(int)


def five_cells(rng, **options):
    """Return a classifier of five cells, and its history."""
    options = {"utility": Revenue(1, 4), "random_state": 0, "gap": 0} | options
    cell, good = applicants(rng, 300)
    return FiniteClassifier(**options).fit(cell, good, accepted=cell < 3), (cell, good)


def count_slowly(accepted, t, maturity):
    """Return good and bad by cell from (round, cell, outcome); None if not known yet."""
    table = np.zeros((2, 5), int)
    for number in {row[0] for row in accepted}:
        rows = [row for row in accepted if row[0] == number]
        missing = any(outcome is None for _, _, outcome in rows)
        if missing and maturity is not None and t - number <= maturity:
            continue
        for _, cell, outcome in rows:
            if outcome is None and maturity is None:
                continue
            table[1 - (outcome or 0), cell] += 1
    return table


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
@pytest.mark.parametrize(
    ("maturity", "coverage"), [(None, None), (0, None), (1, CountedOutcomes(8)), (3, None)]
)
def test_round_counts_if_complete_or_mature(maturity, coverage):
    """Bad outcomes arrive three rounds late; the outcomes that count are counted slowly."""
    rng = np.random.default_rng(0)
    classifier, (cell, good) = five_cells(rng, maturity=maturity, coverage=coverage)
    history = np.flatnonzero(cell < 3)
    accepted = {int(i): [0, int(cell[i]), int(good[i])] for i in history}
    late = []
    for t in range(1, 8):
        cell, good = applicants(rng, 120)
        batch = classifier.decide(cell)
        policy, record = classifier.policies_[-1], classifier.rounds_[-1]
        table = count_slowly(accepted.values(), t, maturity)
        if t > 1:
            assert record.n_outcomes == table[:, policy.exploit].sum()
            observed = table.sum(axis=0)
            pooled = table[0].sum() / observed.sum()
            score = np.where(observed, table[0] / np.maximum(observed, 1), pooled)
            assert policy.score == pytest.approx(score)
        for i in np.flatnonzero(batch.accepted).tolist():
            accepted[int(batch.ids[i])] = [t, int(cell[i]), None]
            late.append((t + (0 if good[i] else 3), int(batch.ids[i]), int(good[i])))
        due = [(name, outcome) for when, name, outcome in late if when == t]
        classifier.observe(*map(list, zip(*due, strict=True)))
        for name, outcome in due:
            accepted[name][2] = outcome
        if t in (
            3,
            4,
        ):  # withdrawn and forgotten applicants do not count, and no round waits for them
            gone = [name for when, name, _ in late if when > t][:5]
            (classifier.withdraw if t == 3 else classifier.forget)(gone)
            late = [row for row in late if row[1] not in gone]
            for name in gone:
                del accepted[name]
    n_known = sum(outcome is not None for _, _, outcome in accepted.values())
    assert classifier.n_outcomes_ == n_known
    again = loads(dumps(classifier))
    cell, _ = applicants(rng, 120)
    assert np.array_equal(again.decide(cell).propensity, classifier.decide(cell).propensity)


def test_without_maturity_late_bad_outcomes_are_missed():
    """The control: bad outcomes arrive late, and only maturity counts them."""
    estimated = {}
    for maturity in (None, 4):
        rng = np.random.default_rng(1)
        classifier, _ = five_cells(rng, maturity=maturity, budget=FdrBudget(alpha=0.2))
        for _ in range(4):
            cell, good = applicants(rng, 400)
            batch = classifier.decide(cell)
            known = batch.accepted & (good == 1)
            classifier.observe(batch.ids[known], good[known])
        estimated[maturity] = classifier.rounds_[-1].estimated_fdr
        share = classifier.policies_[-1].score[2]
        if maturity is None:
            assert share > GOOD[2] + 0.05
        else:
            assert share == pytest.approx(GOOD[2], abs=0.1)
    assert estimated[None] < estimated[4]


def outcomes_with_shares(share, n=2000):
    """Return ``n`` outcomes of each cell with exactly a share of good."""
    good = np.rint(share * n).astype(int)
    assert good == pytest.approx(share * n)
    cell = np.repeat(np.arange(share.size), n)
    return cell, np.concatenate([(np.arange(n) < k).astype(int) for k in good])


@pytest.mark.parametrize(
    "options",
    [{}, {"hypothesis": "threshold"}, {"fairness": SelectionRateParity(0.5)}],
    ids=["cells", "cuts", "fair"],
)
def test_noise_is_corrected_exactly(options):
    """Shares recorded with exactly the expected noise give the fit of the true shares."""
    noise = OutcomeNoise(bad_as_good=0.2, good_as_bad=0.05)
    true = np.array([0.96, 0.9, 0.86, 0.8])
    recorded = true * 0.95 + (1 - true) * 0.2
    fits = {}
    for name, share, stated in (
        ("true", true, None),
        ("corrected", recorded, noise),
        ("uncorrected", recorded, None),
    ):
        classifier = FiniteClassifier(
            Revenue(1, 4),
            FdrBudget(alpha=0.2, exploit=0.115, slack=0.0),
            noise=stated,
            gap=0,
            random_state=0,
            **options,
        )
        cell, good = outcomes_with_shares(share)
        group = np.tile(["A", "B"], cell.size // 2)
        classifier.fit(cell, good, sensitive_features=group)
        classifier.decide(cell[::100], sensitive_features=group[: cell.size // 100])
        fits[name] = classifier.rounds_[0], classifier.policies_[0].accepts.tolist()
    (expected, f), (corrected, corrected_f), (uncorrected, uncorrected_f) = fits.values()
    for field in ("estimated_utility", "estimated_fdr", "selection_rate"):
        value = pytest.approx(getattr(expected, field), abs=1e-9)
        assert getattr(corrected, field) == value, field
    assert 0 < sum(f) < len(f)
    assert f == corrected_f
    assert f != uncorrected_f  # the control
    assert uncorrected.estimated_fdr != pytest.approx(expected.estimated_fdr, abs=0.005)


def test_withdrawn_outcomes_do_not_count_until_corrected(rng):
    classifier, twin = fitted(np.random.default_rng(0)), fitted(np.random.default_rng(0))
    people, good = draw(rng, 200)
    batch, _ = decide(classifier, people), decide(twin, people)
    ids, good = batch.ids[batch.accepted], good[batch.accepted]
    classifier.observe(ids, good).withdraw(np.append(ids[:40], ids[:3]))
    twin.observe(ids[40:], good[40:])
    assert classifier.counts_.good.tolist() == twin.counts_.good.tolist()
    assert classifier.counts_.bad.tolist() == twin.counts_.bad.tolist()
    with pytest.raises(InputError, match=str(ids[0])):
        classifier.observe(ids[:1], good[:1])
    classifier.correct(ids[:20], good[:20])
    assert [correction.before for correction in classifier.corrections_] == [None] * 20
    assert classifier.n_outcomes_ == twin.n_outcomes_ + 20
    rejected = batch.ids[~batch.accepted]
    with pytest.raises(UnknownIdError, match=str(rejected[0])):
        classifier.withdraw(rejected[:1])


# Forgetting; test_classifier.py compares whole rounds with forgotten applicants.

WORD = "a-word-of-a-single-cell"


def content(classifier):
    """Return the unpacked bytes of a saved classifier; numpy stores a letter in four bytes."""
    with zipfile.ZipFile(io.BytesIO(dumps(classifier))) as archive:
        files = b"".join(archive.read(name) for name in archive.namelist())
    return files.replace(b"\0", b"")


def cooks_and_bakers(rng, n, n_rare=0):
    """Return features with strings, outcomes and jobs; the first applicants have a rare job."""
    job = rng.choice(["baker", "cook"], n).astype(object)
    home = rng.integers(3, size=n)
    job[:n_rare] = WORD
    good = (rng.random(n) < np.where(job == "cook", 0.97, 0.7)).astype(int)
    return np.column_stack([job, home.astype(object)]), good, job


def values_by_cell(classifier):
    """Return counts, coverage and the last policy of each cell, by its features and group."""
    X, group = classifier.cells_
    counts, policy = classifier.counts_, classifier.policies_[-1]
    values = zip(
        counts.applicants,
        counts.good,
        classifier.coverage_,
        policy.score,
        policy.acceptance,
        strict=True,
    )
    cells = zip(X.tolist(), group.tolist(), values, strict=True)
    return {(*map(str, x), z): row for x, z, row in cells}


def test_cell_without_applicants_is_dropped_with_its_values(rng):
    X, good, job = cooks_and_bakers(rng, 400, n_rare=3)
    group = rng.choice(["a", "b"], 400)
    classifier = FiniteClassifier(random_state=0)
    accepted = (job == "cook") | (np.arange(400) == 1)
    classifier.fit(X, good, accepted=accepted, sensitive_features=group)
    gone = [0, 1, 2]
    for _ in range(3):
        X, good, _ = cooks_and_bakers(rng, 200, n_rare=4)
        group = rng.choice(["a", "b"], 200)
        batch = classifier.decide(X, sensitive_features=group)
        classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
        gone += batch.ids[:4].tolist()
    before = values_by_cell(classifier)
    assert WORD.encode() in content(classifier)
    classifier.forget(gone)
    assert WORD.encode() not in content(classifier)
    after = values_by_cell(classifier)
    assert after == {cell: values for cell, values in before.items() if cell[0] != WORD}
    assert len(after) < len(before)
    loaded = loads(dumps(classifier))
    X, good, _ = cooks_and_bakers(rng, 200, n_rare=2)
    batch, again = (clf.decide(X, sensitive_features=group) for clf in (classifier, loaded))
    assert np.array_equal(batch.accepted, again.accepted)
    assert np.array_equal(batch.propensity, again.propensity)
    assert not batch.exploit[:2].any()  # their cells are new again
    classifier.observe(batch.ids[batch.accepted], good[batch.accepted])


def test_outcomes_count_in_their_cells_after_cells_are_renumbered(rng):
    cell = np.concatenate([[0], np.arange(1, 6).repeat(40)])
    classifier = FiniteClassifier(random_state=0).fit(cell, np.arange(201) % 25 > 0)
    batch = classifier.decide(cell)
    assert classifier.policies_[0].exploit.all()
    classifier.forget([0, int(batch.ids[0])])
    before = classifier.counts_
    assert len(before.applicants) == 5
    rows = np.flatnonzero(batch.accepted & (cell == 3))
    good = rng.integers(2, size=rows.size)
    classifier.observe(batch.ids[rows], good)
    assert (classifier.counts_.good - before.good).tolist() == [0, 0, good.sum(), 0, 0]
    assert rows.size > 0


def test_cells_of_the_domain_are_never_dropped():
    classifier = fitted(np.random.default_rng(0), n=100)
    classifier.forget(np.arange(100))
    assert classifier.counts_.applicants.tolist() == [0] * 8
    people, _ = draw(np.random.default_rng(1), 40)
    batch = decide(classifier, people)
    assert np.array_equal(batch.exploit, PAST[DOMAIN.cell_of(people)] > 0)  # f_0 is unchanged
    assert len(classifier.counts_.applicants) == 8


@pytest.mark.parametrize(("least", "explored_again"), [(1, True), (0, False)])
def test_cell_that_loses_its_outcomes_is_explored_again(rng, least, explored_again):
    cell = np.repeat([0, 1], 200)
    good = np.where(cell == 0, rng.random(400) < 0.97, rng.random(400) < 0.2).astype(int)
    classifier = FiniteClassifier(min_outcomes=least, random_state=0).fit(cell, good)
    batch = classifier.decide(cell)
    classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
    assert not classifier.accepts([1])[0]
    classifier.forget(np.flatnonzero(cell == 1))  # of the history; the batch rejected this cell
    assert classifier.counts_.outcomes[1] == 0
    batch = classifier.decide(cell)
    assert (~batch.exploit[cell == 1]).all() == explored_again
    assert (batch.propensity[cell == 1] > 0).all() == explored_again


def test_warning_if_no_outcome_is_left(rng):
    cell = np.repeat([0, 1], 200)
    good = (rng.random(400) < 0.95).astype(int)
    classifier = FiniteClassifier(random_state=0).fit(cell, good)
    classifier.decide(cell)
    classifier.forget(np.arange(400))
    with pytest.warns(LearningWarning, match="fit"):
        batch = classifier.decide(cell)
    assert batch.accepted.sum() <= 1  # from the carried budget


def test_unknown_ids_cannot_be_forgotten(rng):
    classifier = fitted(rng)
    people, good = draw(rng, 100)
    batch = decide(classifier, people)
    before = content(classifier)
    with pytest.raises(UnknownIdError, match=r"1 of 2 ids .*1000000"):
        classifier.forget([int(batch.ids[0]), 10**6])
    assert content(classifier) == before
    assert classifier.forget([]) is classifier
    first, outcome = batch.ids[batch.accepted][:1], good[batch.accepted][:1]
    classifier.observe(first, outcome).correct(first, 1 - outcome)
    assert [correction.id for correction in classifier.corrections_] == first.tolist()
    counts = classifier.group_counts_
    classifier.forget(np.concatenate([first, first]))
    assert classifier.corrections_ == ()
    assert classifier.group_counts_ == counts
    for method, arguments in ((classifier.forget, (first,)), (classifier.observe, (first, [1]))):
        with pytest.raises(UnknownIdError, match=f"1 of 1 ids .*{first[0]}"):
            method(*arguments)
    with pytest.raises(InputError, match="integers"):
        classifier.forget(["x"])
