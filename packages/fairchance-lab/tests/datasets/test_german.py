import gzip
import hashlib
from importlib.resources import files

import numpy as np
import pytest

from fairchance.errors import InputError
from fairchance_lab.datasets import german, load_german


def test_figures():
    table = load_german()
    man = table.group == "male"
    assert table.X.shape == (1000, 8)
    assert table.outcome.mean() == 0.7
    assert man.mean() == 0.69
    assert table.outcome[man].mean() == pytest.approx(0.723, abs=5e-4)
    assert table.outcome[~man].mean() == pytest.approx(0.648, abs=5e-4)
    assert table.unscaled == ("sex",)
    assert np.array_equal(table.X[:, -1] == 1, man)


def test_first_person():
    table = load_german()
    person = dict(zip(table.features, table.X[0].tolist(), strict=True))
    assert person == {
        "credit_amount": 1169,
        "duration": 6,
        "instalment_rate": 4,
        "residence_since": 4,
        "age": 67,
        "number_credits": 2,
        "people_liable": 1,
        "sex": 1,
    }
    assert table.outcome[0] == 1


def test_same_on_every_load():
    assert load_german().fingerprint == load_german().fingerprint


def test_the_file_is_the_original_and_has_its_licence():
    folder = files("fairchance_lab.datasets").joinpath("data")
    raw = gzip.decompress(folder.joinpath("german.data.gz").read_bytes())
    assert hashlib.sha256(raw).hexdigest() == german.SHA256
    licence = folder.joinpath("german.LICENCE.txt").read_text()
    for part in ("Statlog (German Credit Data)", "Hofmann", "CC BY 4.0", "10.24432/C5NC77"):
        assert part in licence


@pytest.mark.parametrize(
    "packed",
    [gzip.compress(b"other", mtime=0), b"not gzip", b"\x1f\x8b"],
    ids=["other", "not", "cut"],
)
def test_rejects_another_file(packed, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "german.data.gz").write_bytes(packed)
    monkeypatch.setattr(german, "files", lambda _: tmp_path)
    with pytest.raises(InputError, match=r"sha256.* b21f"):
        load_german()


def test_rejects_another_group():
    with pytest.raises(InputError, match=r"group.* 'sex'.* 'race'"):
        load_german("race")
