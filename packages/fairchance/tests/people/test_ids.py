"""Keyed randomness and the index of ids."""

from __future__ import annotations

import itertools
import math
import unicodedata
from hashlib import md5

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from fairchance.errors import InputError
from fairchance.people.ids import (
    IdIndex,
    as_ids,
    check_spelling,
    id_bits,
    increasing,
    keyed_bits,
    mistakable,
    round_key,
)

FALSE_ALARM = 1e-6  # of each chi-square test, for a random key; the keys here are fixed
MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
ODD, LOW_64 = 0x9E3779B97F4A7C15, 2**64 - 1


def bits_of(ids) -> np.ndarray:
    return id_bits(as_ids(ids, len(ids)))


def undo_shift(value: int, by: int) -> int:
    """Return x from x ^ (x >> by)."""
    x = value
    for _ in range(64 // by):
        x = value ^ (x >> by)
    return x


def undo_keyed_bits(value: int, key: int) -> int:
    """Go back through the mixing step by step, in Python's integers."""
    value = undo_shift(value, 31) * pow(MULTIPLIERS[1], -1, 2**64) & LOW_64
    value = undo_shift(value, 27) * pow(MULTIPLIERS[0], -1, 2**64) & LOW_64
    return (undo_shift(value, 30) * pow(ODD, -1, 2**64) & LOW_64) ^ key


@given(st.integers(0, LOW_64), st.integers(0, LOW_64))
def test_keyed_bits_can_be_undone(bits, key):
    mixed = keyed_bits(np.array([bits], np.uint64), np.uint64(key))
    assert undo_keyed_bits(int(mixed[0]), key) == bits


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=70), max_size=8))
def test_bits_of_text_are_the_first_of_its_md5(texts):
    """Decisions that are on record depend on these bits."""
    names = [text.replace("\0", "") for text in texts]
    expected = [int.from_bytes(md5(name.encode()).digest()[:8], "little") for name in names]
    assert id_bits(np.array(names, np.str_)).tolist() == expected


def test_one_key_as_several():
    bits, keys = np.arange(50, dtype=np.uint64), [round_key(3, t, 1) for t in range(4)]
    together = keyed_bits(bits, np.array(keys, np.uint64)[:, None])
    assert np.array_equal(together, [keyed_bits(bits, key) for key in keys])


def test_integers_never_collide():
    ids = np.unique(np.r_[np.arange(-50_000, 50_000), np.arange(50) << 57])
    assert np.unique(keyed_bits(bits_of(ids), round_key(0, 1))).size == ids.size


def test_mixing_leaves_the_ids_alone():
    bits = np.arange(5, dtype=np.uint64)
    keyed_bits(bits, round_key(0, 1))
    assert bits.tolist() == [0, 1, 2, 3, 4]


def uniformity(bits: np.ndarray, shift: int) -> float:
    counts = np.bincount((bits >> np.uint64(shift)).astype(np.intp) & 255, minlength=256)
    return chisquare(counts).pvalue


@pytest.mark.parametrize("shift", [56, 30, 11])
@pytest.mark.parametrize(
    "ids",
    [range(50_000), range(0, 50_000 * 4096, 4096), [f"A-{i}" for i in range(20_000)]],
    ids=["consecutive", "strided", "text"],
)
def test_keyed_bits_are_uniform(ids, shift):
    for seed in range(3):
        assert uniformity(keyed_bits(bits_of(ids), round_key(seed, 1)), shift) > FALSE_ALARM


def test_the_uniformity_test_can_fail():
    assert uniformity(bits_of(range(50_000)) * np.uint64(2**40), 56) < FALSE_ALARM


def test_one_persons_bits_are_uniform_over_rounds():
    keys = np.array([round_key(5, t, 1) for t in range(1, 5001)], np.uint64)
    for person in (0, 1, 2**40):
        assert uniformity(keyed_bits(np.full(5000, person, np.uint64), keys), 56) > FALSE_ALARM


def test_rounds_agree_no_more_than_chance():
    # Top bits of two rounds form a 16×16 table; dependence would fill it unevenly.
    bits = bits_of(range(50_000))
    for a, b in itertools.combinations([(1, 1), (1, 2), (2, 1)], 2):
        left, right = (keyed_bits(bits, round_key(0, *key)) >> np.uint64(60) for key in (a, b))
        table = np.bincount((left * np.uint64(16) + right).astype(np.intp), minlength=256)
        assert chisquare(table).pvalue > FALSE_ALARM


def test_order_of_rows_does_not_matter():
    ids, order = np.array([f"p{i}" for i in range(200)]), np.random.default_rng(0).permutation(200)
    key = round_key(3, 4)
    assert np.array_equal(
        keyed_bits(bits_of(ids), key)[order], keyed_bits(bits_of(ids[order]), key)
    )


def test_keys_differ_between_seeds_rounds_and_purposes():
    uses = list(itertools.product([0, 1, 2, -1, 2**40], range(60), range(4)))
    assert len({int(round_key(*use)) for use in uses}) == len(uses)
    assert round_key(7, 3, 1) == round_key(7, 3, 1)


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([1, 2], "i"),
        (np.array([1, 2], np.uint8), "i"),
        (["1", "2"], "U"),
        (np.array(["x", "y"], object), "U"),
    ],
)
def test_ids_become_integers_or_strings(ids, kind):
    assert as_ids(ids, 2).dtype.kind == kind


def test_text_bits_depend_on_the_text_only():
    texts = ["a", "b", "", "ä", "1"]
    narrow, wide = id_bits(np.array(texts)), id_bits(np.array([*texts, "long" * 20]))[:-1]
    assert np.array_equal(narrow, wide)
    assert np.unique(narrow).size == len(texts)
    # First eight bytes of md5("a"), little-endian: stable over versions and machines.
    assert int(narrow[0]) == int.from_bytes(bytes.fromhex("0cc175b9c0f1b6a8"), "little")


def test_floats_are_refused():
    mixed = np.array([7, "x", 1.5], object)
    absent = pd.array(["a", None], dtype="string")
    for wrong in ([1.0, 2.0], [True, False], np.array([1, None], object), mixed, absent):
        with pytest.raises(InputError, match="ids"):
            as_ids(wrong, len(wrong))


def test_integers_must_fit():
    assert as_ids(np.array([2**63 - 1], np.uint64), 1).tolist() == [2**63 - 1]
    with pytest.raises(InputError, match="18446744073709551615"):
        as_ids(np.array([2**64 - 1], np.uint64), 1)
    assert as_ids(np.array([5, 6], object), 2).dtype == np.int64
    with pytest.raises(InputError, match=r"2\*\*63"):
        as_ids([2**70, 1], 2)


def test_an_index_without_ids():
    index = IdIndex()
    nobody = np.empty(0, np.uint64)
    index.add(nobody, np.empty(0, np.int64))
    assert len(index) == 0
    assert index.find(np.array([3], np.uint64)).tolist() == [IdIndex.UNKNOWN]


@pytest.mark.parametrize("ids", [[1, 2, 3], [[1], [2]], 5])
def test_one_id_per_row(ids):
    shape = np.shape(ids)
    with pytest.raises(InputError, match=r"ids.* 2 .*shape \(") as error:
        as_ids(ids, 2)
    assert str(shape) in str(error.value)


@st.composite
def batches(draw):
    """Distinct ids cut into batches, in any order, with the extremes of 64 bits among them."""
    near_ends = st.sampled_from([0, 1, 2**63, LOW_64 - 1, LOW_64])
    ids = draw(st.lists(st.one_of(st.integers(0, LOW_64), near_ends), unique=True, min_size=1))
    cuts = draw(st.lists(st.integers(1, len(ids)), max_size=8))
    edges = sorted({0, len(ids), *cuts})
    return [ids[a:b] for a, b in itertools.pairwise(edges)]


@given(batches(), st.lists(st.integers(0, LOW_64), max_size=5))
def test_index_against_a_dict(parts, strangers):
    index, known = IdIndex(), {}
    everybody = np.array([*itertools.chain(*parts), *strangers], np.uint64)
    for part in parts:
        bits = np.array(part, np.uint64)
        values = np.arange(len(known), len(known) + bits.size)
        index.add(bits, values)
        known.update(zip(part, values.tolist(), strict=True))
        expected = [known.get(one, IdIndex.UNKNOWN) for one in everybody.tolist()]
        assert index.find(everybody).tolist() == expected
        assert len(index) == len(known)
    assert len(index) == len(known)
    names = np.array(list(known), np.uint64)
    assert index.find(names).tolist() == list(known.values())


def test_an_empty_index_knows_no_id():
    index, bits = IdIndex(), np.array([1, 2], np.uint64)
    assert index.find(bits).tolist() == [IdIndex.UNKNOWN] * 2
    assert index.find(bits[:0]).size == len(index) == 0


@pytest.mark.parametrize("size", ["one", "random", "falling"])
def test_the_number_of_runs_stays_logarithmic(size):
    rng, index, first = np.random.default_rng(1), IdIndex(), 0
    for number in range(600):
        n = {"one": 1, "random": int(rng.integers(1, 500)), "falling": 600 - number}[size]
        bits = keyed_bits(np.arange(first, first + n, dtype=np.uint64), np.uint64(9))
        index.add(bits, np.arange(first, first + n))
        first += n
        assert len(index._runs) <= 1 + math.log2(first)
    everybody = keyed_bits(np.arange(first, dtype=np.uint64), np.uint64(9))
    assert np.array_equal(index.find(everybody), np.arange(first))


def with_more(names):
    """Return an array of text in which nothing stands at the end."""
    return np.array([f"{one}x" for one in names])


@pytest.mark.parametrize("name", ["a\0", "a\0b", "a\ud800"])
@pytest.mark.parametrize("kind", [list, tuple, lambda one: np.array(one, object), with_more])
def test_ids_that_numpy_would_change_are_refused(name, kind):
    with pytest.raises(InputError, match="ids"):
        as_ids(kind(["b", name]), 2)


def test_increasing_means_without_duplicates():
    cases = [[], [3], [1, 2, 9], [1, 1], [2, 1]]
    assert [increasing(np.array(one, np.uint64)) for one in cases] == [True] * 3 + [False] * 2


LETTERS = ["a", "7", " ", "-", "é", "e", "ß", "\N{COMBINING ACUTE ACCENT}", "\N{ZERO WIDTH JOINER}"]
LETTERS += ["\N{SOFT HYPHEN}", "\N{NO-BREAK SPACE}", "\t", "\x7f", "\N{HANGUL CHOSEONG KIYEOK}"]
LETTERS += ["\N{HANGUL JUNGSEONG A}", "\N{KELVIN SIGN}", "Ω", "漢"]


def is_spelled_well(name):
    """Say so letter by letter, as the Unicode standard has it."""
    ends = all(not one.isspace() for one in name[:1] + name[-1:])
    seen = all(unicodedata.category(one) not in ("Cc", "Cf") for one in name)
    return bool(name) and ends and seen and unicodedata.normalize("NFC", name) == name


@settings(max_examples=300)
@given(st.lists(st.text(st.sampled_from(LETTERS), max_size=4), min_size=1, max_size=5))
def test_spelling_is_checked_for_each_id(names):
    wrong = [one for one in names if not is_spelled_well(one)]
    assert wrong == [one for one in names if mistakable(one)]
    if not wrong:
        check_spelling(np.array(names))
        return
    with pytest.raises(InputError) as raised:
        check_spelling(np.array(names))
    assert ascii(wrong[0]) in str(raised.value)


def test_integers_have_one_spelling():
    check_spelling(np.array([1, -1]))


def test_masked_ids_are_refused():
    with pytest.raises(InputError, match="1 of 2"):
        as_ids(np.ma.array([7, 8], mask=[False, True]), 2)
    assert as_ids(np.ma.array([7, 8]), 2).tolist() == [7, 8]
