"""A classifier that was saved goes on as if nothing had happened; a file is data, never code."""

from __future__ import annotations

import io
import json
import pickle
import tracemalloc
import zipfile
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fairchance import ConstrainedLogistic, FdrBudget, PerGroup, Strategy, Uniform, load, save
from fairchance.core.sizes import MOST_UNPACKED, unzipped
from fairchance.errors import InputError, UntrustedError, VersionsError
from fairchance.learners.trees import GradientBoosting
from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.storage import dumps, loads
from fairchance.simulate.populations import Lender
from fairchance.simulate.run import run
from small_worlds import lender_world

KEYS = ("ids", "accepted", "exploit", "score", "propensity")
TREE = "sklearn.tree._tree.Tree"


def goes_on_alike(one, other, seed=9):
    people = Lender().draw(200, np.random.default_rng(seed))
    first, second = (c.decide(people.X, sensitive_features=people.group) for c in (one, other))
    return all(np.array_equal(getattr(first, key), getattr(second, key)) for key in KEYS)


@pytest.mark.parametrize(
    ("options", "trusted"),
    [
        ({}, ()),
        ({"split": "cross", "thresholds": "per_group", "strategy": Uniform()}, ()),
        ({"learner": PerGroup(ConstrainedLogistic(l2=2.0))}, ()),
        ({"learner": make_pipeline(StandardScaler(), ConstrainedLogistic())}, ()),
        ({"learner": HistGradientBoostingClassifier(max_iter=5), "budget": FdrBudget(0.3)}, ()),
    ],
)
def test_round_trip(make_classifier, tmp_path, options, trusted):
    classifier, world = make_classifier(n_batch=200, n_rounds=3, **options)
    for _ in run(classifier, world):
        pass
    path = tmp_path / "lender.fairchance"
    save(classifier, path)
    again = load(path, trusted=trusted)
    assert repr(again.rounds_) == repr(classifier.rounds_)
    assert goes_on_alike(classifier, again)
    ids = np.arange(classifier._intake.next_id - 200, classifier._intake.next_id)
    pending = [i for i in ids if classifier._people.find(np.array([i], np.uint64))[0] >= 0]
    for one in (classifier, again):
        one.observe(pending, np.ones(len(pending), int))
    assert goes_on_alike(classifier, again, seed=10)


@pytest.mark.parametrize(
    ("kind", "learner"),
    [
        (CertifiedClassifier, None),
        (CertifiedClassifier, GradientBoosting()),
        (PartialFeedbackClassifier, None),
        (PartialFeedbackClassifier, GradientBoosting()),
        (PartialFeedbackClassifier, PerGroup()),
    ],
)
def test_learners_of_ours_need_no_version_of_scikit_learn(monkeypatch, rng, kind, learner):
    frame = pd.DataFrame({"a": rng.normal(size=900), "b": rng.choice(["x", "y", None], 900)})
    good = (rng.random(900) < 1 / (1 + np.exp(-2 * frame.a))).astype(int)
    groups = rng.integers(0, 2, 900)
    classifier = kind(learner=learner, random_state=0)
    classifier.fit(
        frame[:500], good[:500], accepted=frame.a[:500] > -1, sensitive_features=groups[:500]
    )
    for rows in (slice(500, 700), slice(700, 900)):
        decided = classifier.decide(frame[rows], sensitive_features=groups[rows])
        classifier.observe(decided.ids[decided.accepted], good[rows][decided.accepted])
    content = dumps(classifier)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {name.rpartition(".")[2] for name in archive.namelist()} == {"json", "npy"}
    monkeypatch.setattr("sklearn.__version__", "99.0")
    again = loads(content)
    one, other = (
        c.decide(frame[:50], ids=np.arange(5000, 5050), sensitive_features=groups[:50])
        for c in (classifier, again)
    )
    assert all(np.array_equal(getattr(one, key), getattr(other, key)) for key in KEYS)


@pytest.mark.parametrize("learner", [LogisticRegression(), make_pipeline(StandardScaler())])
def test_estimators_of_others_need_the_version_that_wrote_them(monkeypatch, learner):
    content, made_by = dumps(learner), sklearn.__version__
    assert isinstance(loads(content, holds=object), type(learner))
    monkeypatch.setattr("sklearn.__version__", "99.0")
    with pytest.raises(VersionsError) as caught:
        loads(content, holds=object)
    assert (caught.value.stored, caught.value.running) == (made_by, "99.0")
    assert all(version in str(caught.value) for version in (made_by, "99.0"))


def test_raw_columns_and_string_ids(tmp_path, rng):
    def table(n):
        trade = rng.choice(["smith", "baker"], n)
        good = (rng.random(n) < np.where(trade == "baker", 0.9, 0.6)).astype(int)
        return pd.DataFrame({"trade": trade}), good

    frame, good = table(200)
    learner = make_pipeline(
        OneHotEncoder(sparse_output=False), HistGradientBoostingClassifier(max_iter=5)
    )
    classifier = PartialFeedbackClassifier(
        budget=FdrBudget(0.5), learner=learner, random_state=0
    ).fit(frame, good, ids=[f"h{i}" for i in range(200)])
    save(classifier, tmp_path / "x")
    again = load(tmp_path / "x")
    frame, _ = table(100)
    ids = [f"b{i}" for i in range(100)]
    one, other = (c.decide(frame, ids=ids) for c in (classifier, again))
    assert all(np.array_equal(getattr(one, key), getattr(other, key)) for key in KEYS)


@dataclass(frozen=True)
class Cautious(Strategy):
    """A strategy of the user's own."""

    power: float = 2.0

    def person_factor(self, X, score, group):
        return (score + 0.01) ** self.power


def test_own_types_are_made_only_when_allowed(make_classifier, tmp_path):
    classifier, _ = make_classifier(strategy=Cautious(3.0))
    save(classifier, tmp_path / "x")
    with pytest.raises(InputError, match="'Cautious'"):
        load(tmp_path / "x")
    assert load(tmp_path / "x", types=[Cautious]).strategy == Cautious(3.0)


def test_functions_cannot_be_saved_and_the_old_file_stays(make_classifier, tmp_path):
    path = tmp_path / "x"
    classifier, _ = make_classifier()
    save(classifier, path)
    before = path.read_bytes()
    unsaved, _ = make_classifier(strategy=lambda X, score, group: score + 1)
    with pytest.raises(InputError):
        save(unsaved, path)
    assert path.read_bytes() == before


def test_files_that_are_not_ours(make_classifier, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(InputError):
        load(path)
    classifier, _ = make_classifier()
    save(classifier, path)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files["manifest.json"])
    manifest["format"] = 99
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
    with pytest.raises(InputError, match=r"99.*1"):
        load(path)


def test_estimators_are_made_of_trusted_types_only(make_classifier, tmp_path, monkeypatch):
    classifier, _ = make_classifier(learner=DecisionTreeClassifier(max_depth=3, random_state=0))
    save(classifier, tmp_path / "x")
    monkeypatch.setattr("fairchance.methods.storage._DATA_TYPES", {"numpy.dtype"})
    with pytest.raises(InputError, match="Tree"):
        load(tmp_path / "x")
    assert goes_on_alike(classifier, load(tmp_path / "x", trusted=[TREE]))


def writes_a_file(pipeline, path):
    """Let what changes features be a function of ours that writes, as only a file could have it."""
    step = pipeline.steps[0][1]
    step.func, step.kw_args = save, {"path": path}


def test_no_function_of_ours_can_be_called_by_a_file(tmp_path, rng):
    X = rng.normal(size=(200, 2))
    learner = make_pipeline(FunctionTransformer(), LogisticRegression())
    classifier = PartialFeedbackClassifier(learner=learner, weights="none", random_state=0)
    classifier.fit(X, (X[:, 0] + rng.normal(size=200) > 0).astype(int))
    save(classifier, tmp_path / "x")
    assert np.array_equal(load(tmp_path / "x").predict_proba(X), classifier.predict_proba(X))
    model = classifier._learned.likelihood.estimator
    writes_a_file(model, str(tmp_path / "written"))
    save(classifier, tmp_path / "x")
    with pytest.raises(UntrustedError, match=r"fairchance\.methods\.storage\.save"):
        load(tmp_path / "x")
    trusting = load(tmp_path / "x", trusted=["fairchance.methods.storage.save"])
    with pytest.raises(ValueError, match="None"):  # what a file writes is no feature
        trusting.predict_proba(X)
    assert (tmp_path / "written").exists()


@pytest.mark.parametrize("learner", [None, HistGradientBoostingClassifier(max_iter=2)])
def test_a_damaged_file_gives_one_message_or_loads(make_classifier, learner):
    classifier, _ = make_classifier(n_batch=60, n_rounds=1, learner=learner)
    content, damaged = dumps(classifier), 0
    for at in np.random.default_rng(0).integers(len(content), size=150):
        changed = bytearray(content)
        changed[at] ^= 1 << int(at) % 8
        try:
            loads(bytes(changed))
        except InputError as error:
            damaged += "\n" not in str(error)
    assert damaged > 75


@pytest.mark.parametrize("manifest", [{}, [], {"format": 1}, None])
def test_an_empty_manifest(tmp_path, manifest):
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
    with pytest.raises(InputError):
        load(tmp_path / "x")


def packed(compression=zipfile.ZIP_DEFLATED, **files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, part in files.items():
            archive.writestr(name.replace("_", "."), part)
    return buffer.getvalue()


def zeros(n):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(n, np.uint8))
    return buffer.getvalue()


def saved_file(root, objects=(), **files):
    manifest = {"format": 1, "fairchance": "1", "root": root, "objects": list(objects)}
    return packed(manifest_json=json.dumps(manifest), **files)


def estimator(name):
    return {"skops": name, "scikit-learn": sklearn.__version__}


def skops_file(nodes, **files):
    array = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode"}
    made = [{**array, "__id__": at, "type": "numpy", "file": file} for at, file in nodes]
    items = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "__id__": 0}
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps([1]))) as archive:
        schema = json.loads(archive.read("schema.json"))
    head = {name: schema[name] for name in ("protocol", "_skops_version")}
    return packed(schema_json=json.dumps({**items, **head, "content": made}), **files)


def test_a_small_file_does_not_unpack_to_gigabytes():
    large = MOST_UNPACKED + 1
    bomb = saved_file({"array": "0.npy"}, **{"0_npy": zeros(large)})
    assert len(bomb) < 2**20
    with pytest.raises(InputError, match="268,4"):
        loads(bomb, holds=np.ndarray)
    inside = skops_file([(1, "1.npy")], **{"1_npy": zeros(large)})
    with pytest.raises(InputError, match="268,4"):
        loads(saved_file({"ref": 0}, [estimator("0.skops")], **{"0_skops": inside}), holds=list)


def test_an_archive_that_understates_its_size_is_not_unpacked_further():
    content = bytearray(packed(a=bytes(2**24)))
    at = content.rindex(b"PK\x01\x02") + 24  # the size in the directory, which is what counts
    content[at : at + 4] = (1000).to_bytes(4, "little")
    tracemalloc.start()
    with pytest.raises(zipfile.BadZipFile):  # the checksum is that of all zeros
        unzipped(bytes(content), "x")
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_one_array_in_a_file_is_not_copied_many_times():
    many = saved_file({"list": [{"array": "0.npy"}] * 1000}, **{"0_npy": zeros(2**20)})
    with pytest.raises(InputError):
        loads(many, holds=list)
    one = skops_file([(1, "1.npy"), (1, "1.npy")], **{"1_npy": zeros(9)})
    many = skops_file([(1, "1.npy"), (2, "1.npy")], **{"1_npy": zeros(9)})
    assert len(loads(saved_file({"ref": 0}, [estimator("a")], a=one), holds=list)) == 2
    with pytest.raises(InputError):
        loads(saved_file({"ref": 0}, [estimator("a")], a=many), holds=list)


@pytest.mark.parametrize("options", [{}, {"certify": "per_group"}, {"ranks": "within_group"}])
def test_a_certified_classifier_goes_on_as_it_would_have(options, tmp_path):
    world = lender_world(2, n_batch=400, n_rounds=8)
    past = world.history()
    classifier = CertifiedClassifier(horizon=8, random_state=0, **options)
    classifier.fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    batches = [one.applicants for one in world.batches()]
    for number, batch in enumerate(batches):
        if number == 5:
            save(classifier, tmp_path / "x")
            loaded = load(tmp_path / "x")
            assert repr(loaded.rounds_) == repr(classifier.rounds_)  # some figures are NaN
        people = batch.people
        decided = classifier.decide(people.X, sensitive_features=people.group)
        classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
        if number >= 5:
            again = loaded.decide(people.X, sensitive_features=people.group)
            loaded.observe(again.ids[again.accepted], batch.outcome[again.accepted])
            assert np.array_equal(again.propensity, decided.propensity)
            assert np.array_equal(again.accepted, decided.accepted)


@pytest.mark.parametrize("kind", [CertifiedClassifier, PartialFeedbackClassifier])
def test_the_policy_of_the_last_round_is_saved_too(kind, rng):
    X = rng.normal(size=(400, 2))
    classifier = kind(random_state=0).fit(X, (X[:, 0] > -0.5).astype(int), accepted=X[:, 1] > -1)
    with pytest.raises(InputError):
        _ = classifier.policy_
    decided = classifier.decide(X)
    again = loads(dumps(classifier)).policy_.decide(X, ids=decided.ids)
    assert all(np.array_equal(getattr(again, key), getattr(decided, key)) for key in KEYS)
