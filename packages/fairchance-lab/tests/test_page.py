"""The report of experiments: its numbers follow from the counts, and it is one whole file."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cli.markup import HOSTILE, elements
from experiments.known_results import crafted, exact, make_results, with_failures
from fairchance.errors import InputError
from fairchance.pages.page import Figure, PageTable, Section, render
from fairchance_lab import page as experiment
from fairchance_lab.experiments import tables
from fairchance_lab.page import experiment_page, write_report

FOUR = {
    "plain": (100, 12),
    "certified": (200, 20),
    "greedy-aligned": (900, 300),
    "ceiling": (250, 25),
}


@pytest.fixture
def without_charts(monkeypatch):
    """Charts take seconds; here only the rest of a page matters."""

    class Charts:
        def __getattr__(self, name):
            return lambda *_, **options: SimpleNamespace(
                to_dict=lambda validate: {}, made=(name, options)
            )

    monkeypatch.setattr(experiment, "plot", Charts())
    monkeypatch.setattr(experiment, "save", lambda _, stem: [stem])


def parts_of(page, kind):
    found, todo = [], [page.figure, *page.sections]
    while todo:
        part = todo.pop(0)
        todo += part.parts if isinstance(part, Section) else []
        found += [part] if isinstance(part, kind) else []
    return found


def cards_of(page):
    return {card.title: card for card in page.cards}


def test_first_screen_follows_from_the_counts(without_charts):
    """“Certified” earns 26 of the ceiling's 32.5 thousand, with 10 % bad; greedy breaks α."""
    page = experiment_page("x", exact(FOUR, groups="ab", people=2000))
    cards = cards_of(page)
    assert (cards["Earned"].value, cards["Earned"].light) == ("80 % of the ceiling", "")
    assert (cards["Mistakes"].value, cards["Mistakes"].light) == ("10 %", "green")
    assert (cards["Groups"].value, cards["Groups"].light) == ("all below α", "green")
    assert cards["Repetitions"].value == "6, few"
    assert page.light == "green"
    assert page.figure.chart.made == (
        "trade_off",
        {"highlight": ["certified", "plain", "greedy-aligned", "ceiling"]},
    )


@pytest.mark.parametrize(
    ("bad", "light", "repetitions"),
    [(10, "green", 6), (16, "amber", 6), (10, "amber", 3), (10, "amber", 1), (30, "red", 6)],
)
def test_light_of_mistakes(without_charts, bad, light, repetitions):
    page = experiment_page("x", exact({"plain": (100, bad)}, repetitions=repetitions))
    assert cards_of(page)["Mistakes"].light == page.light == light


def test_a_group_for_which_the_bound_was_not_kept_is_named(without_charts):
    page = experiment_page("x", exact({"plain": ((900, 100), (40, 40))}, groups=("old", "young")))
    card = cards_of(page)["Groups"]
    assert (card.value, card.light) == ("young above α", "red")


def test_a_best_method_without_certificates_is_not_called_certified(without_charts):
    results = exact({"plain": (200, 20), "certified": (100, 10)})
    results.count("n_certified")[0, 1] = 1000
    card = cards_of(experiment_page("x", results))["Certificate"]
    assert (card.value, card.light) == ("none", "")


def test_each_group_has_a_figure_of_its_good_applicants(without_charts):
    page = experiment_page("x", exact(FOUR, groups="ab", people=2000))
    made = [figure.chart.made for figure in parts_of(page, Figure)]
    drawn = [(name, options["group"]) for name, options in made if "group" in options]
    assert drawn == [("metric", "a"), ("metric", "b")]


def test_more_than_the_ceiling_is_explained(without_charts):
    page = experiment_page("x", exact({"plain": (100, 10), "ceiling": (50, 5)}))
    card = cards_of(page)["Earned"]
    assert (card.value, card.light) == ("13,000 a round", "amber")


def test_one_repetition_shows_numbers_without_intervals(without_charts):
    page = experiment_page("x", crafted({"plain": 100, "no-exploration": 50}, size=(1, 8)))
    cards = cards_of(page)
    assert cards["Repetitions"].value == "1, few"
    assert "nan" not in json.dumps([card.text + card.value for card in page.cards])


def test_table_of_methods(without_charts):
    page = experiment_page("x", exact(FOUR, groups="ab", people=2000))
    table = parts_of(page, PageTable)[0]
    assert [row[0] for row in table.rows] == ["Certified", "Ceiling", "Plain", "Greedy-aligned"]
    certified, ceiling, _, greedy = (dict(zip(table.titles, r, strict=True)) for r in table.rows)
    assert certified["Verdict"] == "best"
    assert certified["Earned a round"] == "52,000"
    assert certified["Share of the ceiling"] == "80.0 %"
    assert certified["Mistakes"] == ("10.0 %", "9.4 % to 10.6 %")
    assert certified["α"] == "kept"
    assert certified["Accepted"] == "10.0 %"
    assert (greedy["Verdict"], greedy["α"]) == ("worst", "not kept")
    assert ceiling["Verdict"] == "reference"


def test_table_beside_the_paper(without_charts, rng):
    results = make_results(
        rng, ("plain", "both-fair"), size=(4, 6), n=300, published="german_gender"
    )
    page = experiment_page("x", results)
    (table,) = (t for t in parts_of(page, PageTable) if t.title == "Beside the paper")
    row = next(row for row in table.rows if row[0] == "Both-fair")
    mean = tables.summary(results, "revenue")
    text, small = row[1]
    assert float(text.partition(" ± ")[0].replace(",", "").replace("−", "-")) == pytest.approx(
        1000 * mean.estimate.mean[0, 1], rel=0.005
    )
    assert small.startswith("sd ")
    assert row[2] == ("8,800", "sd 4,100")
    assert row[4] == ("11.0 %", "sd 5.0 %")
    assert "The paper" not in [s.title for s in experiment_page("x", make_results(rng)).sections]


def test_failed_methods_are_named_first(without_charts, rng):
    whole = make_results(rng, ("plain", "fairall-aligned"), size=(3, 4), n=300)
    page = experiment_page("x", with_failures(whole, "fairall-aligned", range(3)))
    (section,) = (s for s in page.sections if s.id == "x-failures")
    assert "fairall" in section.parts[0][0].lower()
    html = render("t", [page], "")
    assert "nan" not in re.sub("<script>.*?</script>", "", html, flags=re.DOTALL).lower()


def test_nothing_is_left_if_all_methods_failed(without_charts, rng):
    results = make_results(rng, ("plain",), size=(2, 3), n=50)
    page = experiment_page("x", with_failures(results, "plain", range(2)))
    assert page.light == "red"
    assert {"x-failures", "x-settings"} == {section.id for section in page.sections}


def test_what_was_varied_has_a_section(without_charts):
    page = experiment_page("x", crafted({"plain": 200}, 0.12, alphas=(0.05, 0.15, 0.2)))
    (section,) = (s for s in page.sections if s.id == "x-varied")
    assert [part.chart.made[0] for part in section.parts if isinstance(part, Figure)] == [
        "by_setting"
    ]


def test_hostile_names_stay_text(without_charts, tmp_path, rng):
    def page(name):
        results = make_results(rng, ("plain", "no-exploration"), (name, "b"), size=(3, 4), n=300)
        about = results.about
        about["experiment"] |= {"name": name, "focus": name}
        about["experiment"]["world"] = {
            "past": [{"rule": "group", "group": name}],
            "drift": {"feature": name},
        }
        about["labels"] = {"plain": name, "no-exploration": "other"}
        about["data"] = {"name": name, "source": name, "fingerprint": name, "rows": 5}
        results = with_failures(results, "no-exploration", (1,))
        failure = replace(results.failures[0], sentence=name)
        results = replace(results, failures=(failure,))
        (path,) = write_report([results], tmp_path / "report.html")
        return path.read_text(encoding="utf-8")

    plain, hostile = page("harmless"), page(HOSTILE)
    assert [tag for tag, _ in elements(hostile)] == [tag for tag, _ in elements(plain)]
    assert "\u202e" not in hostile


def test_several_results_in_one_file(without_charts, rng, tmp_path):
    path = tmp_path / "all.html"
    first, second = make_results(rng), make_results(rng, groups="abc")
    assert write_report([first, second], path) == [path]
    assert [file.name for file in path.parent.iterdir()] == ["all.html"]
    found = elements(path.read_text(encoding="utf-8"))
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in found if tag == "a"]
    assert links == ["#a-test", "#a-test-2"]
    assert {link[1:] for link in links} <= set(ids)


def test_figures_as_files(without_charts, rng, tmp_path):
    results = make_results(rng, ("plain",), "a", size=(2, 3), n=300)
    folder = tmp_path / "figures"
    stems = write_report([results], None, folder)
    assert folder.is_dir()
    assert {"a-test-trade-off", "a-test-revenue", "a-test-fdr"} <= {stem.name for stem in stems}


def test_report_needs_results(tmp_path):
    with pytest.raises(InputError, match="got none"):
        write_report([], tmp_path / "r.html")
