import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairchance.errors import InputError
from fairchance_lab.datasets import CATALOGUE, load
from fairchance_lab.datasets.catalogue import find_entry

SAMPLE = "acs_ca_2018_adults_40pct.parquet"


@pytest.fixture
def data(tmp_path, persons):
    """A folder with two person files and a prepared file."""
    folder = tmp_path / "data"
    for year in (2018, 2019):
        (folder / f"{year}/1-Year").mkdir(parents=True)
        (folder / f"{year}/1-Year/psam_p06.csv").write_text(persons(year))
    rows = {"AGEP": [40, 50], "RAC1P": [1, 2], "SEX": [1, 2], "label": [1, 0]}
    pq.write_table(pa.table(rows), folder / SAMPLE)
    return folder


def test_names_and_descriptions():
    assert list(CATALOGUE) == [
        "german",
        "adult-ca-2019",
        "acs-ca-2018-sample",
        "acs-pa-ma-in-2024",
        "adult",
        "taiwan",
        "fico",
    ]
    for name, entry in CATALOGUE.items():
        assert entry.name == name
        assert all((entry.description, entry.source, entry.licence, entry.groups, entry.utility))
        assert entry.gain > 0 < entry.loss
        assert 0 < entry.alpha < 1
    assert [e.name for e in CATALOGUE.values() if e.kind == "population"] == ["fico"]


def test_availability_without_any_data():
    states = {name: entry.available().state for name, entry in CATALOGUE.items()}
    assert states == {
        "german": "bundled",
        "adult-ca-2019": "download",
        "acs-ca-2018-sample": "absent",
        "acs-pa-ma-in-2024": "absent",
        "adult": "download",
        "taiwan": "download",
        "fico": "download",
    }
    assert str(CATALOGUE["german"].available()) == "bundled"
    assert str(find_entry("acs:CA:2018").available()) == (
        "would be downloaded from "
        "https://www2.census.gov/programs-surveys/acs/data/pums/2018/1-Year/csv_pca.zip"
    )
    assert str(CATALOGUE["acs-ca-2018-sample"].available()) == (
        f"not here: put {SAMPLE} into a folder named by FAIRCHANCE_DATA"
    )


def test_availability_with_a_data_folder(data):
    path = data / "2019/1-Year/psam_p06.csv"
    assert str(CATALOGUE["adult-ca-2019"].available(data)) == f"found at {path}"
    assert CATALOGUE["acs-ca-2018-sample"].available(data).where == str(data / SAMPLE)
    assert find_entry("acs:CA+TX:2019").available(data).state == "download"
    (data / "fico").mkdir()
    for name in ("totals", "transrisk_cdf_by_race_ssa", "transrisk_performance_by_race_ssa"):
        (data / f"fico/{name}.csv").touch()
    assert CATALOGUE["fico"].available(data).where == str(data / "fico")


def test_loads(data):
    assert load("german").name == "german"
    paper = load("adult-ca-2019", data=data, download=False)
    assert paper.name == "adult-ca-2019"
    assert "American Community Survey 2019" in paper.source
    other = load("acs:ca:2018", data=data, group="gender", download=False)
    assert other.name == "acs:CA:2018"
    assert set(other.group) == {"male", "female"}
    sample = load("acs-ca-2018-sample", data=data)
    assert sample.name == "acs-ca-2018-sample"
    assert "a random 40 % of them (a stand-in, not the paper's California 2019)" in sample.source


def test_a_replacement_is_never_used_as_the_papers_data(data):
    (data / "2019/1-Year/psam_p06.csv").unlink()
    with pytest.raises(InputError, match=r"2019/1-Year/csv_pca.zip"):
        load("adult-ca-2019", data=data, download=False)


def test_missing_files():
    with pytest.raises(InputError, match=f"acs-ca-2018-sample .*{SAMPLE}"):
        load("acs-ca-2018-sample")
    with pytest.raises(InputError, match="cdf"):
        load("fico", download=False)


@pytest.mark.parametrize(
    ("name", "suggested"), [("germn", True), ("zzz", False), ("acs:CA", False)]
)
def test_unknown_names(name, suggested):
    with pytest.raises(InputError) as caught:
        load(name)
    assert repr(name) in str(caught.value)
    assert ("'german'" in str(caught.value)) == suggested
    assert all(known in str(caught.value) for known in (*CATALOGUE, "acs:CA:2018"))


def test_unknown_states_and_groups():
    with pytest.raises(InputError, match=r"state.* 'XX'"):
        load("acs:XX:2018")
    with pytest.raises(InputError, match=r"group.* 'sex'.* 'race'"):
        load("german", group="race")


def test_german_needs_no_extra_and_other_data_name_theirs(data):
    """Runs in a process that cannot import pyarrow and pooch."""
    code = f"""
import sys
sys.modules["pyarrow"] = sys.modules["pooch"] = None
from fairchance_lab.datasets import load, read_table
print(len(load("german")))
for name in ("acs:CA:2019", "fico"):
    try:
        load(name, data={str(data)!r})
    except ValueError as error:
        print(error)
try:
    read_table({str(data / SAMPLE)!r}, outcome="label", group="SEX")
except ValueError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    rows, *messages = done.stdout.splitlines()
    assert rows == "1000"
    assert len(messages) == 3
    for message, package in zip(messages, ("pyarrow", "pooch", "pyarrow"), strict=True):
        assert f"{package}, which is not installed" in message
        assert "`pip install " in message
