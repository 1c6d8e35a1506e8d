import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secondlook.errors import InputError
from secondlook.lab.datasets import CATALOGUE, load
from secondlook.lab.datasets.catalogue import entry

SAMPLE = "acs_ca_2018_adults_40pct.parquet"


@pytest.fixture
def data(tmp_path, persons):
    """A folder with a little of everything."""
    folder = tmp_path / "data"
    for year in (2018, 2019):
        (folder / f"{year}/1-Year").mkdir(parents=True)
        (folder / f"{year}/1-Year/psam_p06.csv").write_text(persons(year))
    rows = {"AGEP": [40, 50], "RAC1P": [1, 2], "SEX": [1, 2], "label": [1, 0]}
    pq.write_table(pa.table(rows), folder / SAMPLE)
    return folder


def test_names_and_words():
    assert list(CATALOGUE) == [
        "german",
        "adult-ca-2019",
        "acs-ca-2018-sample",
        "acs-pa-ma-in-2024",
        "fico",
    ]
    for name, one in CATALOGUE.items():
        assert one.name == name
        assert all((one.description, one.source, one.licence, one.groups))
    assert [one.name for one in CATALOGUE.values() if one.kind == "population"] == ["fico"]


def test_what_is_here_on_a_bare_machine():
    states = {name: one.available().state for name, one in CATALOGUE.items()}
    assert states == {
        "german": "bundled",
        "adult-ca-2019": "download",
        "acs-ca-2018-sample": "absent",
        "acs-pa-ma-in-2024": "absent",
        "fico": "download",
    }
    assert str(CATALOGUE["german"].available()) == "bundled"
    assert str(entry("acs:CA:2018").available()) == (
        "would be downloaded from "
        "https://www2.census.gov/programs-surveys/acs/data/pums/2018/1-Year/csv_pca.zip"
    )
    assert str(CATALOGUE["acs-ca-2018-sample"].available()) == (
        f"not here: put {SAMPLE} into a folder named by SECONDLOOK_DATA"
    )


def test_what_is_found(data):
    path = data / "2019/1-Year/psam_p06.csv"
    assert str(CATALOGUE["adult-ca-2019"].available(data)) == f"found at {path}"
    assert CATALOGUE["acs-ca-2018-sample"].available(data).where == str(data / SAMPLE)
    assert entry("acs:CA+TX:2019").available(data).state == "download"
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


def test_a_stand_in_is_never_taken_for_the_papers_data(data):
    (data / "2019/1-Year/psam_p06.csv").unlink()
    with pytest.raises(InputError, match=r"2019/1-Year/csv_pca.zip is not on this machine"):
        load("adult-ca-2019", data=data, download=False)


def test_what_cannot_be_downloaded():
    with pytest.raises(InputError, match=rf"^acs-ca-2018-sample needs the file {SAMPLE}, which is"):
        load("acs-ca-2018-sample")
    with pytest.raises(InputError, match=r"^the credit score tables of"):
        load("fico", download=False)


@pytest.mark.parametrize(
    ("name", "nearest"), [("germn", " (the nearest is 'german')"), ("zzz", ""), ("acs:CA", "")]
)
def test_unknown_names(name, nearest):
    with pytest.raises(InputError) as caught:
        load(name)
    assert str(caught.value) == (
        f"there are no data of the name {name!r}{nearest}; names are german, adult-ca-2019, "
        f"acs-ca-2018-sample, acs-pa-ma-in-2024, fico, and acs:<states>:<year> such as acs:CA:2018."
    )


def test_unknown_states_and_groups():
    with pytest.raises(InputError, match=r"^state must be the two letters of a state"):
        load("acs:XX:2018")
    with pytest.raises(InputError, match=r"^group of german must be one of 'sex', got 'race'"):
        load("german", group="race")


def test_german_needs_no_pyarrow_and_the_others_say_so(data):
    """Nothing of pyarrow can be imported in a process of its own."""
    code = f"""
import sys
sys.modules["pyarrow"] = None
from secondlook.lab.datasets import load, read_table
print(len(load("german")))
try:
    load("acs:CA:2019", data={str(data)!r})
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
    need = (
        "reading this file needs pyarrow, which is not installed; "
        "`pip install 'secondlook[data]'` (in a checkout: `pip install '.[data]'`) installs it."
    )
    assert done.stdout.splitlines() == ["1000", need, need]
