"""md5 of many texts against hashlib, text by text."""

from __future__ import annotations

from hashlib import md5
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook.people import digests
from secondlook.people.digests import md5_bits

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=70)
PLAIN = st.text(st.characters(max_codepoint=127, exclude_characters="\0"), max_size=60)


def slowly(texts: list[str]) -> list[int]:
    return [int.from_bytes(md5(one.encode()).digest()[:8], "little") for one in texts]


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(PLAIN, max_size=8) | st.lists(TEXT, max_size=8))
def test_against_hashlib(texts):
    assert md5_bits(np.array(texts, dtype=np.str_)).tolist() == slowly(texts)
    with patch.object(digests, "_MANY", 1):
        assert md5_bits(np.array(texts, dtype=np.str_)).tolist() == slowly(texts)


@pytest.mark.parametrize("longest", [1, 8, 54, 55, 56, 64, 130])
def test_every_length_up_to_beyond_one_chunk(longest):
    texts = ["x" * n for n in range(longest + 1)]
    with patch.object(digests, "_MANY", 1):
        assert md5_bits(np.array(texts)).tolist() == slowly(texts)


def test_blocks_of_many_and_one_text_that_is_not_plain():
    texts = [f"application-{number}" for number in range(20_000)]
    texts[10_000] = "Zoë"
    assert md5_bits(np.array(texts)).tolist() == slowly(texts)


def test_rows_apart_in_memory():
    texts = np.array([f"name {number}" for number in range(100)])
    assert md5_bits(texts[::3]).tolist() == slowly(texts[::3].tolist())
