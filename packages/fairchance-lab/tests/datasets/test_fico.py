import numpy as np
import pytest

from fairchance.errors import InputError
from fairchance_lab.datasets import fico, load_fico

HEADER = "Non- Hispanic white,Black,Hispanic,Asian"
TABLES = {
    fico.TOTALS: f"Kind,{HEADER}\r\nSSA,100,50,25,25\r\n",
    fico.CDF: f"Score,{HEADER}\r\n0,10,20,0,50\r\n0.5,40,19.9,50,50\r\n100,99.98,100,100,100\r\n",
    fico.PERFORMANCE: f"Score,{HEADER}\r\n0,90,95,90,90\r\n0.5,50,60,50,40\r\n100,1,2,1,0\r\n",
}


@pytest.fixture
def put(tmp_path):
    def put(**changed):
        folder = tmp_path / "data"
        (folder / "fico").mkdir(parents=True, exist_ok=True)
        for name, text in (TABLES | changed).items():
            (folder / "fico" / name).write_text(text, newline="")
        return folder

    return put


def check(domain):
    assert domain.features == ("score",)
    assert np.unique(domain.group).tolist() == ["asian", "black", "hispanic", "white"]
    in_group = {word: domain.group == word for word in np.unique(domain.group)}
    shares = {word: domain.mass[rows].sum() for word, rows in in_group.items()}
    assert shares == pytest.approx({"white": 0.5, "black": 0.25, "hispanic": 0.125, "asian": 0.125})
    white, black = in_group["white"], in_group["black"]
    assert domain.X[white, 0].tolist() == [0, 0.5, 100]
    # A distribution that does not end at 100 is scaled; a fall adds nothing.
    assert domain.mass[white] * 2 == pytest.approx(np.array([10, 30, 59.98]) / 99.98)
    assert domain.mass[black] * 4 == pytest.approx([0.2, 0, 0.8])
    assert domain.good[black] == pytest.approx([0.05, 0.4, 0.98])


def test_from_a_folder(put):
    check(load_fico(put(), download=False))


def test_from_the_environment_variable(put, monkeypatch):
    monkeypatch.setenv("FAIRCHANCE_DATA", str(put()))
    check(load_fico(download=False))


def test_people_can_be_drawn(put, rng):
    domain = load_fico(put())
    people = domain.draw(1000, rng)
    assert np.all(domain.probability_good(people) >= 0.05)
    assert (people.group == "white").mean() == pytest.approx(0.5, abs=0.06)


def test_downloads_once(server, monkeypatch, cache):
    monkeypatch.setattr(fico, "URL", server.url)
    server.bodies |= {f"/{name}": text.encode() for name, text in TABLES.items()}
    check(load_fico())
    check(load_fico())
    assert server.requests == [f"/{name}" for name in fico.FILES]
    assert sorted(path.name for path in (cache / "fico").iterdir()) == sorted(fico.FILES)


def test_an_error_page_is_not_kept(server, monkeypatch, cache):
    monkeypatch.setattr(fico, "URL", server.url)
    server.bodies |= {f"/{name}": b"<html></html>" for name in TABLES}
    with pytest.raises(InputError, match=server.url):
        load_fico()
    assert list((cache / "fico").iterdir()) == []


def test_a_folder_that_lacks_a_file_is_not_used(put):
    data = put()
    (data / "fico" / fico.CDF).unlink()
    with pytest.raises(InputError) as caught:
        load_fico(data, download=False)
    assert all(part in str(caught.value) for part in (fico.URL, *fico.FILES, "FAIRCHANCE_DATA"))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (fico.CDF, "Black", "Blue", r"cdf.*is not a table of numbers with the columns 'Non- His"),
        (fico.CDF, "99.98", "many", r"is not a table of numbers .*; download it from"),
        (fico.CDF, "0.5,40", "0.5,-40", "is not a table of numbers"),
        (fico.CDF, TABLES[fico.CDF], "", "is not a table of numbers"),
        (fico.PERFORMANCE, "\r\n0.5", "\r\n0.7", "do not fit together"),
        (fico.PERFORMANCE, "95", "195", "do not fit together"),
        (fico.TOTALS, "SSA", "SSA,1,1,1,1\r\nall", "do not fit together"),
    ],
)
def test_rejects_inconsistent_tables(name, old, new, message, put):
    data = put(**{name: TABLES[name].replace(old, new)})
    with pytest.raises(InputError, match=message):
        load_fico(data)
