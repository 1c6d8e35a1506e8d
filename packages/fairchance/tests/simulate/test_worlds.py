import numpy as np
import pytest

from fairchance.errors import InputError
from fairchance.simulate.histories import (
    AllAccepted,
    AtRandom,
    ByPolicy,
    Composition,
    GroupExcluding,
    PastCutoff,
    SelectedOnOutcome,
)
from fairchance.simulate.people import Table
from fairchance.simulate.populations import Drifting, Lender, draw_applicants
from fairchance.simulate.streams import Drawn, Parts, Resampled, TableDrift
from fairchance.simulate.worlds import World
from small_worlds import lender_world

FEATURES = ("income", "debt", "years")


@pytest.fixture
def table(rng):
    drawn = draw_applicants(Lender(), 2000, rng)
    X = np.column_stack([drawn.people.X * 7 + 3, drawn.people.group == "B"])
    return Table(
        "town", "made up", (*FEATURES, "in_b"), X, drawn.people.group, drawn.outcome, ("in_b",)
    )


def world_of(past, n=20_000, **options):
    return World(Drawn(Lender(), n, 2), past, seed=7, **options)


def shares(past):
    """Return the accepted shares of good and of bad people, and the good share of the accepted."""
    world = world_of(past)
    good, accepted = world.full_history().outcome == 1, world.history().accepted
    return accepted[good].mean(), accepted[~good].mean(), good[accepted].mean()


def test_history_hides_outcomes_of_the_rejected():
    past = lender_world(1, n_history=500).history()
    assert np.array_equal(np.isnan(past.outcomes), ~past.accepted)
    assert 0.2 < past.accepted.mean() < 0.6


def test_a_world_is_the_same_in_every_run():
    world = lender_world(4)
    for first, second in zip(world.batches(), world.batches(), strict=True):
        assert np.array_equal(first.applicants.people.X, second.applicants.people.X)
        assert np.array_equal(first.sealed.reported, second.sealed.reported)
    assert np.array_equal(world.history().accepted, lender_world(4).history().accepted)
    assert not np.array_equal(world.history().people.X, lender_world(5).history().people.X)


def test_the_stream_does_not_depend_on_the_past_rule():
    worlds = world_of(SelectedOnOutcome(), 50), world_of(AtRandom(), 50)
    for first, second in zip(*(world.batches() for world in worlds), strict=True):
        assert np.array_equal(first.applicants.people.X, second.applicants.people.X)


def test_selected_on_the_outcome():
    good, bad, _ = shares(SelectedOnOutcome(good=0.9, bad=0.1))
    assert (good, bad) == (pytest.approx(0.9, abs=0.01), pytest.approx(0.1, abs=0.01))


def test_composition_of_the_accepted():
    good, bad, share = shares(Composition(good=0.9, size=0.5))
    assert share == pytest.approx(0.9, abs=0.01)
    assert good * 0.7 + bad * 0.3 == pytest.approx(0.5, abs=0.03)
    *_, scarce = shares(Composition(good=0.9, size=1.0))  # fewer people, the same composition
    assert scarce == pytest.approx(0.9, abs=0.01)


def test_cutoff_rule():
    world = world_of(PastCutoff("years", share=0.4))
    years, accepted = world.history().people.X[:, 2], world.history().accepted
    assert accepted.mean() == pytest.approx(0.4, abs=0.01)
    assert years[accepted].min() >= years[~accepted].max()


def test_excluded_group_and_combined_rules():
    world = world_of(GroupExcluding("B", rate=0.02) & SelectedOnOutcome(good=1.0, bad=0.0))
    people, accepted = world.history().people, world.history().accepted
    assert 0 < accepted[people.group == "B"].mean() < 0.03
    assert not accepted[world.full_history().outcome == 0].any()


def test_random_all_accepted_and_policy_rules():
    assert world_of(AtRandom(0.3)).history().accepted.mean() == pytest.approx(0.3, abs=0.02)
    assert world_of(AllAccepted()).history().accepted.all()
    assert not world_of(ByPolicy(lambda people: people.X[:, 0] * 0)).history().accepted.any()


@pytest.mark.parametrize(
    ("past", "message"),
    [
        (PastCutoff("wealth"), "'wealth'"),
        (GroupExcluding("C"), "'C'.*A, B"),
    ],
)
def test_impossible_pasts_are_rejected(past, message):
    with pytest.raises(InputError, match=message):
        world_of(past, 50).history()


def test_shares_are_validated():
    with pytest.raises(InputError, match="good"):
        SelectedOnOutcome(good=90)


def test_history_scaling_does_not_see_the_future(table):
    world = World(Resampled(table, 400, 3), AtRandom(), seed=0)
    X = world.history().people.X
    assert X[:, :3].mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert X[:, :3].std(axis=0) == pytest.approx(1)
    assert set(X[:, 3]) == {0.0, 1.0}  # the protected column is not scaled
    later = next(world.batches()).applicants.people.X
    assert np.abs(later[:, :3].mean(axis=0)).min() > 1e-4
    # Changing the future does not change the history.
    changed = Table(**{**vars(table), "X": np.vstack([table.X[:-5], 1e6 * table.X[-5:]])})
    parts = [World(Parts(t, 40), AtRandom(), seed=2) for t in (table, changed)]
    touched = [np.abs(w.history().people.X).max() > 100 for w in parts]
    assert touched == [False, False]
    assert np.array_equal(*(w.history().people.X for w in parts))


def test_stream_scaling_sees_the_future(table):
    world = World(Parts(table, 10), AtRandom(), scaling="stream", seed=0)
    everything = [world.full_history(), *(batch.applicants for batch in world.batches())]
    X = np.concatenate([part.people.X for part in everything])
    assert X[:, :3].mean(axis=0) == pytest.approx(0, abs=1e-9)
    raw = World(Parts(table, 10), AtRandom(), scaling="none", seed=0).full_history()
    assert np.isin(raw.people.X[:, 0], table.X[:, 0]).all()
    with pytest.raises(InputError, match="scaling"):
        World(Parts(table, 10), AtRandom(), scaling="all", seed=0)


def test_parts_hold_each_row_once(table):
    world = World(Parts(table, 7), AtRandom(), scaling="none", seed=3)
    everything = [world.full_history(), *(batch.applicants for batch in world.batches())]
    assert world.n_rounds == 6
    together = np.concatenate([part.people.X for part in everything])
    assert np.array_equal(np.sort(together[:, 0]), np.sort(table.X[:, 0]))
    assert max(map(len, everything)) - min(map(len, everything)) <= 1


def test_drifting_table(table):
    drift = TableDrift("income", tilt=0.1, spoil=0.05)
    world = World(Resampled(table, 3000, 10, drift), AtRandom(), scaling="none", seed=0)
    batches = [batch.applicants for batch in world.batches()]
    assert batches[-1].people.X[:, 0].mean() > batches[0].people.X[:, 0].mean() + 4
    high = [batch.outcome[batch.people.X[:, 0] > 10].mean() for batch in batches]
    assert high[-1] < high[0] - 0.2


def test_drifting_population():
    population = Drifting(Lender(), shift=(0.0, 0.2, 0.0), log_odds=-0.1)
    world = World(Drawn(population, 5000, 10), AtRandom(), seed=0)
    first, *_, last = world.batches()
    assert world.full_history().people.X[:, 1].mean() == pytest.approx(0.0, abs=0.05)
    assert first.applicants.people.X[:, 1].mean() == pytest.approx(0.2, abs=0.05)
    people, p = last.applicants.people, last.applicants.probability_good
    assert people.X[:, 1].mean() == pytest.approx(2.0, abs=0.05)
    before = Lender().probability_good(people)
    assert np.log(p / (1 - p)) == pytest.approx(np.log(before / (1 - before)) - 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda table: Resampled(table, 0, 3), "n_batch.*1"),
        (lambda table: Parts(table, 5000), "2.*2000.*5000"),
        (lambda table: Resampled(table, 5, 3, TableDrift("wealth")), "got 'wealth'"),
        (lambda table: Drifting(Lender(), shift=(1.0,)), None),
        (lambda table: TableDrift("income", spoil=2.0), "spoil"),
    ],
)
def test_invalid_streams_are_rejected(table, make, message):
    with pytest.raises(InputError, match=message):
        make(table)


def test_fingerprint(table):
    same = Table(**{**vars(table), "name": "other", "X": table.X.copy()})
    other = Table(**{**vars(table), "outcome": 1 - table.outcome})
    assert table.fingerprint == same.fingerprint != other.fingerprint
