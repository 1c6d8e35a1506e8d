"""A column made in parts is a sequence like a list, and makes no more than is asked for."""

from __future__ import annotations

import itertools

import pytest

from secondlook.people.in_parts import InParts


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr("secondlook.people.in_parts._PART", 3)


def test_it_reads_like_a_list(few):
    n = 7
    whole = [str(at) for at in range(n)]
    places = [None, *range(-n - 2, n + 3)]
    for start, stop, step in itertools.product(places, places, [None, 1, 2, -1, -3]):
        at = slice(start, stop, step)
        assert InParts(n, whole.__getitem__)[at] == whole[at], at
    for at in range(-n, n):
        assert InParts(n, whole.__getitem__)[at] == whole[at]
    for at in (-n - 1, n):
        with pytest.raises(IndexError):
            InParts(n, whole.__getitem__)[at]
    made = InParts(n, whole.__getitem__)
    assert list(made) == whole
    assert len(made) == n
    assert made.count("3") == 1


def test_each_row_is_made_once_and_none_before_it_is_asked_for(few):
    asked = []

    def make(rows):
        asked.append((rows.start, rows.stop))
        return list(range(rows.start, rows.stop))

    column = InParts(8, make)
    assert asked == []
    assert column[1:3] == [1, 2]
    assert asked == [(0, 3)]
    assert column[0:4] == [0, 1, 2, 3]
    assert column[5] == 5
    assert asked == [(0, 3), (3, 6)]
    assert column[-1] == 7
    assert asked == [(0, 3), (3, 6), (6, 8)]
    assert list(column) == list(range(8))
    assert len(asked) == 3


def test_no_rows_are_an_empty_sequence():
    column = InParts(0, lambda _: pytest.fail("nobody is there"))
    assert list(column) == column[:] == []
