"""Policies decide on Arrow record batches, in pieces of any size, as in one call."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fairchance import CertifiedClassifier, PartialFeedbackClassifier
from fairchance.errors import InputError
from fairchance.methods.policy import DECIDED, KEPT
from fairchance.methods.storage import dumps, loads
from fairchance.people.columns import TableColumn, TableColumns
from fairchance.people.features import FeatureColumns
from fairchance.people.intake import Reader
from fairchance.people.tables import InputTable
from small_worlds import lender_world

pytestmark = pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
N = 300


def opened(**options):
    """Return the policy of a round, applicants to decide on, and their ids and groups."""
    world = lender_world(0, n_batch=N, n_rounds=1)
    past = world.history()
    make = CertifiedClassifier if "horizon" in options else PartialFeedbackClassifier
    classifier = make(random_state=3, **options)
    classifier.fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    (batch,) = world.batches()
    X, group = batch.applicants.people.X, batch.applicants.people.group
    return classifier, X, group, np.arange(N) + 10_000


def table(X, group, ids):
    columns = {f"x{at}": X[:, at] for at in range(X.shape[1])}
    return pa.table({"loan": ids, "sex": group, **columns})


@pytest.mark.parametrize("options", [{"horizon": 6}, {"exploration": "coins"}])
def test_pieces_of_any_size_are_decided_as_one_call(options, rng):
    classifier, X, group, ids = opened(**options)
    policy = classifier.open_round(N).for_table(ids="loan", groups="sex")
    whole = policy.decide(X, ids=ids, sensitive_features=group)
    applicants = table(X, group, ids)
    for size in (1, 37, N):
        pieces = [applicants.slice(N, 0), applicants.take(rng.permutation(N))]
        batches = [batch for piece in pieces for batch in piece.to_batches(size)]
        decided = pa.Table.from_batches(
            loads(dumps(policy), holds=type(policy)).decide_batches(batches)
        )
        decided = decided.sort_by("loan")
        assert decided.column_names == ["loan", *DECIDED]
        assert decided["loan"].to_pylist() == ids.tolist()
        assert decided["accepted"].to_pylist() == whole.accepted.tolist()
        assert decided["exploit"].to_pylist() == whole.exploit.tolist()
        np.testing.assert_allclose(decided["propensity"], whole.propensity, rtol=1e-12, atol=1e-12)
        assert set(decided["round"].to_pylist()) == {1}
        assert set(decided["policy"].to_pylist()) == {policy.key}
    kept = pa.Table.from_batches(policy.decide_batches(applicants.to_batches(), keep=True))
    assert kept.select(applicants.column_names) == applicants
    assert kept.column_names[applicants.num_columns :] == [KEPT + name for name in DECIDED]
    assert kept[KEPT + "accepted"].to_pylist() == whole.accepted.tolist()


def test_each_program_and_round_has_a_key_of_its_own():
    keys = set()
    for seed in (3, 4):
        classifier, X, _, ids = opened(horizon=6, alpha=0.1 + seed / 100)
        classifier.set_params(random_state=seed)
        classifier.fit(X, np.arange(N) % 5 > 0, ids=ids)
        for t in range(2):
            policy = classifier.open_round()
            keys.add(policy.key)
            assert loads(dumps(policy), holds=type(policy)).key == policy.key
            new = ids + 1000 * (t + 1)
            classifier.close_round([policy.decide(X, ids=new)])
    assert len(keys) == 4


def test_columns_that_are_missing_or_empty_are_named():
    classifier, X, group, ids = opened(horizon=6)
    policy, applicants = classifier.open_round(), table(X, group, ids)
    with pytest.raises(InputError, match=r"no column 'id'.*for_table"):
        list(policy.decide_batches(applicants.to_batches()))
    policy = policy.for_table(ids="loan", groups=["sex"])
    empty = pa.array([None, *ids[1:].tolist()])
    with pytest.raises(InputError, match=f"1 of {N} applicants .* 'loan'"):
        list(policy.decide_batches(applicants.set_column(0, "loan", empty).to_batches()))
    with pytest.raises(InputError, match="columns"):
        list(policy.decide_batches(applicants.drop_columns(["x0"]).to_batches()))


def test_codes_that_lost_their_zeros_are_refused():
    column = TableColumn("zip", "category", categories=("01067", "20095"))
    reader = Reader(False, False, False, columns=TableColumns((column,), named=True))
    table = InputTable("loan", features=FeatureColumns(("zip",), ("zip",), "<f8"))
    given = table.read(pa.table({"loan": [1, 2], "zip": ["01067", "20095"]}), reader)
    assert given["X"]["zip"].to_pylist() == ["01067", "20095"]
    with pytest.raises(InputError, match=r"'zip' must hold codes with zeros.*got '1067'.*1 of 2"):
        table.read(pa.table({"loan": [1, 2], "zip": [1067, 20095]}), reader)


def test_a_draw_of_fixed_size_needs_the_whole_batch():
    classifier, X, group, ids = opened()
    classifier.decide(X, ids=ids, sensitive_features=group)
    batches = table(X, group, ids).to_batches()
    with pytest.raises(InputError, match="exploration='coins'"):
        list(classifier.policy_.for_table(ids="loan", groups="sex").decide_batches(batches))
