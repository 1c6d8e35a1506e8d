"""Kept texts are compared and rewritten."""

from __future__ import annotations

import pytest

from golden import compare_with, same, updated


@pytest.mark.parametrize(
    ("shown", "printed", "now"),
    [
        ("", "a\n", "a\n"),
        ("a\n", "", ""),
        ("a 4:...:b\nc\n", "a 4:x:b  \nd\n", "a 4:...:b\nd\n"),
        ("a\n...\nz\n", "a2\nx\ny\nz\n", "a2\n...\nz\n"),
        ("a\n...\nz\nlast\n", "a\nx\nnew\nz\nLast\nmore\n", "a\n...\nz\nLast\nmore\n"),
        ("at 2:...:b it\n", "at the 2:77:b it\n", "at the 2:...:b it\n"),
        ("a ... c\n", "b\n", "b\n"),
    ],
)
def test_what_still_matches_keeps_its_dots(shown, printed, now):
    assert updated(shown, printed) == now
    assert same(now, printed)
    assert updated(now, printed) == now


def test_a_text_is_written_only_if_it_is_asked_for(tmp_path):
    file = tmp_path / "golden" / "it.txt"
    with pytest.raises(pytest.fail.Exception):
        compare_with(file, "printed\n", update=False)
    assert not file.exists()
    compare_with(file, "printed\n", update=True)
    assert file.read_text() == "printed\n"
    compare_with(file, "printed\n", update=False)
