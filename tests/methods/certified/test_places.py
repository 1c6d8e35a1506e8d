"""Where people are written down: engines share one numbering, and codes say who has no row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from secondlook.methods.certified.places import HISTORY, REJECTED, rows_by_engine
from secondlook.people.ids import IdIndex


@given(
    st.integers(1, 4),
    st.lists(
        st.one_of(st.integers(0, 50), st.sampled_from([REJECTED, HISTORY, IdIndex.UNKNOWN])),
        max_size=30,
    ),
)
def test_each_person_is_with_the_engine_that_wrote_them_down(n_engines, places):
    found = rows_by_engine(np.array(places, np.int64), n_engines)
    assert len(found) == n_engines
    for z, (who, rows) in enumerate(found):
        assert who.tolist() == [one >= 0 and one % n_engines == z for one in places]
        assert (rows * n_engines + z).tolist() == [
            one for one in places if one >= 0 and one % n_engines == z
        ]
