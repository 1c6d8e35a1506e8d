import socket
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairchance.errors import InputError, UnavailableError
from fairchance_lab.datasets import acs, load_acs_income
from fairchance_lab.datasets.acs import FEATURES, load_prepared

FOLDER = "2019/1-Year"


@pytest.fixture
def put(tmp_path):
    """Return a function that writes a file into a data folder and returns the folder."""

    def put(name, content, folder=FOLDER):
        path = tmp_path / "data" / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path / "data"

    return put


@pytest.fixture
def bureau(server, monkeypatch):
    """The local server instead of the Census Bureau's."""
    monkeypatch.setattr(acs, "URL", server.url)
    return server


def check_race(table):
    assert table.features == FEATURES
    assert table.group.tolist() == ["White", "White", "Black", "Black"]
    # Missing income counts as not above, and 50,000 is not above itself.
    assert table.outcome.tolist() == [1, 0, 0, 1]
    assert table.X[0].tolist() == [40, 1, 21, 1, 440, 6, 40, 1, 2]
    assert table.X[1].tolist() == [8, 0, 5, 5, 0, 6, 0, 1, 1]
    assert table.unscaled == ("RAC1P",)


@pytest.mark.parametrize("name", ["csv_pca.zip", "psam_p06.csv", "ss19pca.csv"])
def test_reads_every_file_format(name, put, persons, zipped):
    text = persons()
    data = put(name, zipped(text) if name.endswith("zip") else text)
    table = load_acs_income("CA", 2019, data=data, download=False)
    check_race(table)
    assert table.name == "acs:CA:2019"
    assert table.source == (
        "American Community Survey 2019 1-Year public use microdata, US Census Bureau, public "
        "domain: persons of CA; White and Black people (RAC1P 1, 2); good is an income above "
        "50,000 dollars, missing not above; missing features are 0."
    )


def test_environment_variable_names_the_folder(put, persons, monkeypatch):
    monkeypatch.setenv("FAIRCHANCE_DATA", str(put("psam_p06.csv", persons())))
    check_race(load_acs_income("ca", 2019, download=False))


def test_gender_keeps_white_and_black_people(put, persons):
    data = put("psam_p06.csv", persons())
    table = load_acs_income("CA", 2019, group="gender", data=data)
    assert table.group.tolist() == ["female", "male", "male", "female"]
    assert table.unscaled == ("SEX",)


def test_several_states(put, persons):
    folder = "2021/1-Year"
    put("psam_p42.csv", persons(2021, "42"), folder)
    data = put("psam_p18.csv", persons(2021, "18"), folder)
    table = load_acs_income(["PA", "IN"], 2021, data=data)
    assert len(table) == 8
    assert table.name == "acs:PA+IN:2021"


def test_newer_name_of_the_state_column(put, persons):
    text = persons().replace(",ST,", ",STATE,")
    check_race(load_acs_income("CA", 2019, data=put("psam_p06.csv", text)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"year": 2018}, r"2019.* 2018"),
        ({"code": "48"}, r"CA .* 48"),
    ],
)
def test_rejects_files_of_another_year_or_state(text, message, put, persons):
    data = put("psam_p06.csv", persons(**text))
    with pytest.raises(InputError, match=message):
        load_acs_income("CA", 2019, data=data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("PINCP", "OTHER"), "'PINCP or label'"),
        (("RAC1P", "OTHER"), "'RAC1P'"),
        ((",8,,5", ",eight,,5"), r"psam_p06\.csv"),
        (("1,2,60000", "1,3,60000"), "SEX of acs:CA:2019"),
    ],
)
def test_rejects_other_files(change, message, put, persons):
    data = put("psam_p06.csv", persons().replace(*change))
    with pytest.raises(InputError, match=message):
        load_acs_income("CA", 2019, data=data)


def test_rejects_a_file_without_rows(put, persons):
    data = put("psam_p06.csv", persons().splitlines()[0] + "\n")
    with pytest.raises(InputError, match="acs:CA:2019"):
        load_acs_income("CA", 2019, data=data)
    with pytest.raises(InputError, match=r"psam_p06\.csv"):
        load_acs_income("CA", 2019, data=put("psam_p06.csv", ""))


def damage(content):
    """Return compressed bytes with some of them flipped."""
    return content[:80] + bytes(255 - byte for byte in content[80:100]) + content[100:]


def test_rejects_a_damaged_zip_file_in_a_folder(put, persons, zipped):
    whole = zipped(persons())
    for content in (b"no zip", whole[:100], damage(whole), zipped("x", name="notes.txt")):
        data = put("csv_pca.zip", content)
        with pytest.raises(InputError, match=r"csv_pca\.zip"):
            load_acs_income("CA", 2019, data=data)


@pytest.mark.parametrize(
    ("states", "year", "message"),
    [
        ("XX", 2019, "'XX'"),
        (["CA", "ca"], 2019, "'CA', 'CA'"),
        ([], 2019, "none"),
        ("CA", 1999, "1999"),
    ],
)
def test_rejects_unknown_states_and_years(states, year, message):
    with pytest.raises(InputError, match=message):
        load_acs_income(states, year)


def test_rejects_unknown_options():
    with pytest.raises(InputError, match="'race', 'gender', got 'age'"):
        load_acs_income("CA", 2019, group="age")


def test_downloads_once(bureau, cache, persons, zipped):
    content = zipped(persons())
    bureau.bodies[f"/{FOLDER}/csv_pca.zip"] = content
    calls = []
    check_race(load_acs_income("CA", 2019, progress=lambda *call: calls.append(call)))
    check_race(load_acs_income("CA", 2019))
    assert bureau.requests == [f"/{FOLDER}/csv_pca.zip"]
    assert calls[-1] == (len(content), len(content))
    assert [path.name for path in (cache / FOLDER).iterdir()] == ["csv_pca.zip"]


def test_a_damaged_download_is_deleted(bureau, cache, persons, zipped):
    whole, path = zipped(persons()), f"/{FOLDER}/csv_pca.zip"
    for content in (b"<html>log in</html>", whole[:200], damage(whole)):
        bureau.bodies[path] = content
        with pytest.raises(InputError, match=r"csv_pca\.zip"):
            load_acs_income("CA", 2019)
    bureau.bodies[path], bureau.promised[path] = whole[:200], len(whole)
    with pytest.raises(UnavailableError, match=r"csv_pca\.zip"):
        load_acs_income("CA", 2019)
    assert list((cache / FOLDER).iterdir()) == []


def test_message_without_a_network(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setattr(acs, "URL", url)
    with pytest.raises(UnavailableError) as caught:
        load_acs_income("CA", 2019)
    assert f"{url}/{FOLDER}/csv_pca.zip (Connection refused)" in str(caught.value)
    assert "FAIRCHANCE_DATA" in str(caught.value)


def test_message_without_download():
    with pytest.raises(InputError) as caught:
        load_acs_income("CA", 2019, download=False)
    assert f"{acs.URL}/{FOLDER}/csv_pca.zip" in str(caught.value)
    assert "FAIRCHANCE_DATA" in str(caught.value)


@pytest.fixture
def prepared(tmp_path):
    """Return a function that writes a prepared file of four people."""
    columns = {
        "AGEP": [40, 12, 30, 50],
        "OCCP": [440, None, 4020, 1020],
        "RAC1P": [1, 1, 2, 8],
        "SEX": [2, 1, 1, 1],
        "WKHP": [40, None, 20, 45],
    }

    def make(name="acs_four.parquet", **more):
        path = tmp_path / name
        pq.write_table(pa.table(columns | more), path)
        return path

    return make


def test_prepared_file_with_income(prepared):
    table = load_prepared(prepared(PINCP=[60_000, None, 50_000, 90_000]))
    assert table.outcome.tolist() == [1, 0, 0]
    assert table.features == ("AGEP", "OCCP", "WKHP", "RAC1P", "SEX")
    assert table.X[1].tolist() == [12, 0, 0, 1, 1]
    assert table.name == "acs_four"
    assert table.source == (
        "Persons of the American Community Survey in the file acs_four.parquet; White and Black "
        "people (RAC1P 1, 2); good is an income above 50,000 dollars, missing not above; without "
        "COW, SCHL, MAR, POBP, absent from the file; missing features are 0."
    )


def test_prepared_file_with_label(prepared):
    table = load_prepared(prepared(label=[1, 0, 0, 1]), group="gender", name="x")
    assert table.outcome.tolist() == [1, 0, 0]
    assert table.group.tolist() == ["female", "male", "male"]
    assert "missing not above" not in table.source


def test_prepared_file_without_outcome(prepared):
    with pytest.raises(InputError, match=r"acs_four .*'PINCP or label'"):
        load_prepared(prepared())


def test_zip_and_prepared_file_agree(put, persons, zipped, tmp_path):
    data = put("csv_pca.zip", zipped(persons()))
    raw = load_acs_income("CA", 2019, data=data)
    with zipfile.ZipFile(data / FOLDER / "csv_pca.zip") as archive:
        archive.extract("psam_p06.csv", tmp_path)
    copied = load_prepared(tmp_path / "psam_p06.csv")
    assert raw.fingerprint == copied.fingerprint
    assert np.array_equal(raw.X, copied.X)
