"""Who is written down where, whatever the order of rows."""

from __future__ import annotations

import numpy as np
import pytest

from secondlook import PartialFeedbackClassifier
from secondlook.methods.many_classes.records import GivenDecisions
from secondlook.people.batches import Batch, one_group
from secondlook.people.ids import IdIndex, id_bits, keyed_bits
from secondlook.people.observed import GrowingArray
from secondlook.people.store import Memory

N = 400


def batch_of(ids, X, group=None):
    group = one_group(ids.size) if group is None else group
    return Batch(X, group=group, ids=ids, bits=id_bits(ids), backend="numpy")


def recorded(order, *, grouped):
    """Write the same people down in some order of rows; an id's features, group and outcome."""
    ids = np.arange(1000, 1000 + N)
    accepted, good = ids % 3 > 0, (ids // 7 % 2).astype(np.int8)
    memory = Memory(seed=5)
    batch = batch_of(ids[order], ids[order, None] * 0.5, ids[order] % 2 if grouped else None)
    memory.record(batch, accepted[order], 4, good[order][accepted[order]])
    return memory, ids, accepted, good


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_in_any_order_are_written_down_alike(grouped):
    shuffled = np.random.default_rng(0).permutation(N)
    (one, ids, accepted, good), (other, *_) = (
        recorded(order, grouped=grouped) for order in (np.arange(N), shuffled)
    )
    for number, (fold, same) in enumerate(zip(one.folds, other.folds, strict=True)):
        mine = ids[accepted & (one.fold_of(id_bits(ids)) == number)]
        assert 50 < mine.size < N - 50
        for kept in (fold, same):
            assert np.array_equal(kept.X[:, 0] * 2, mine)
            assert np.array_equal(kept.column("outcome"), good[mine - 1000])
            assert np.array_equal(kept.column("group"), mine % 2 if grouped else 0 * mine)
            assert set(kept.column("round")) == {4}


def test_earlier_versions_kept_people_by_their_hashed_ids():
    ids = np.arange(1000, 1000 + N)
    orders = np.arange(N), np.random.default_rng(2).permutation(N)
    for order in orders:
        memory = Memory(seed=5, hashed=True)
        memory.record(batch_of(ids[order], ids[order, None] * 0.5), np.ones(N, bool), 1)
        keyed = keyed_bits(id_bits(ids), memory._fold_key)
        by_hash = ids[np.argsort(keyed)]
        kept = np.concatenate([fold.X[:, 0] * 2 for fold in memory.folds])
        assert np.array_equal(kept, by_hash)
    assert "_hashed" not in vars(memory)  # as it was saved then
    assert Memory(seed=5)._hashed is False


def test_everybody_is_found_where_they_were_written_down():
    memory, ids, accepted, _ = recorded(np.random.default_rng(1).permutation(N), grouped=False)
    place = memory.index.find(id_bits(ids))
    assert np.array_equal(place >= 0, accepted)
    for number, fold in enumerate(memory.folds):
        mine = accepted & (place % 2 == number)
        assert np.array_equal(fold.X[place[mine] // 2, 0] * 2, ids[mine])


def test_an_index_joins_numbers_of_both_widths():
    index = IdIndex()
    index.add(np.array([1, 3], np.uint64), np.array([10, 30], np.int32), in_order=True)
    index.add(np.array([2, 4], np.uint64), np.array([20, 2**40]))
    found = index.find(np.array([4, 3, 2, 1, 0], np.uint64))
    assert found.tolist() == [2**40, 30, 20, 10, IdIndex.UNKNOWN]
    assert found.dtype == np.int64


@pytest.mark.parametrize("ids", [[-3, -2, -1], [7, 8, 9], [9, 3, 5], [-5, 4, 6]])
def test_the_next_ids_come_after_the_largest(ids):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    clf = PartialFeedbackClassifier(random_state=0).fit(X, y, ids=np.arange(-100, -40))
    clf.decide(X[:3], ids=ids)
    assert clf.decide(X[:2]).ids.tolist() == [max(0, max(ids) + 1), max(0, max(ids) + 1) + 1]


def test_decisions_follow_people_to_their_new_positions():
    given = GivenDecisions()
    given._folds = [
        GrowingArray(np.array([7, 8, 9], np.int16)),
        GrowingArray(np.empty(0, np.int16)),
    ]
    given.follow([np.array([0, -1, 1]), np.empty(0, np.int64)])
    assert given._folds[0].view().tolist() == [7, 9]
