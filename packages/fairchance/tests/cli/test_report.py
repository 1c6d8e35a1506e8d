"""``fairchance report`` on a ledger: numbers equal other counts, and hostile text is shown."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from html import unescape
from importlib.metadata import version
from itertools import chain

import pytest

import fairchance as fc
from cli.hostile_lender import run
from fairchance.ledger import schema
from fairchance.ledger.health import check_health, worst_light
from fairchance.ledger.summary import Outcomes, RecordedChange, read_details, summarise
from fairchance.pages.page import Code, PageTable, render
from fairchance.pages.program import program_page
from fairchance.people.reasons import decode
from fairchance.words import percent, percents
from fairchance.words.checks import verdict
from ledger_worlds import algorithm_1, certified, started


def page(program, late=180.0, **changed):
    """Return the page of a program, with some facts of its summary changed."""
    summary = summarise(program.ledger)
    return program_page(replace(summary, **changed), read_details(program.ledger, summary), late)


def tables(shown):
    """Return the tables of a page by title: the titles of columns, and rows as plain text."""
    parts = chain(*(section.parts for section in shown.sections))
    return {
        part.title: (
            list(part.titles),
            [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in part.rows],
        )
        for part in parts
        if isinstance(part, PageTable)
    }


def cards(shown):
    return {card.title: card for card in shown.cards}


def sections(shown):
    return {section.id: section for section in shown.sections if section.parts}


def count(titles, row, name):
    """Return a count in a row; 0 if there is no such column."""
    return int(row[titles.index(name)].replace(",", "")) if name in titles else 0


def everything(shown):
    """Return all text of a page."""
    return unescape(re.sub(r"<[^>]*>", "", render("", [shown], "").split("<script>\n")[0]))


@pytest.fixture(scope="module")
def lender(hostile_lender):
    return page(hostile_lender[1])


def first_screen(shown):
    """Return what is seen before anything is unfolded."""
    lines = [f"{shown.light}: {shown.verdict}"]
    lines += [f"{card.light or '–'} {card.title}: {card.value} {card.text}" for card in shown.cards]
    lines += [f"> {one.title}: {one.brief}" for one in shown.sections if one.parts]
    return "\n".join(lines) + "\n"


def test_what_the_first_screen_says(lender, golden, tmp_path):
    program, _, (batch,) = started(f"sqlite:///{tmp_path}/x.db", certified(), n_rounds=1)
    screens = {"Algorithm 1": lender, "certified, before its first batch": page(program)}
    program.decide(batch.people.X, sensitive_features=batch.people.group)
    screens["certified, after one round without outcomes"] = shown = page(program)
    titles, (row,) = tables(shown)["By round"]
    assert row[titles.index("Others without a loan")] == "–"  # it is not known yet
    said = "\n".join(f"# {name}\n{first_screen(each)}" for name, each in screens.items())
    golden("report", said, ranked=True)


def test_hostile_text_is_shown_and_escaped(hostile_lender, tmp_path):
    path = tmp_path / "lender.html"
    result = run("report", "--ledger", hostile_lender[0], "-o", path)
    assert str(path) in result.stdout
    assert list(path.parent.iterdir()) == [path]
    html = path.read_text(encoding="utf-8")
    for text in ("<script>alert(1)</script>", "<b>2</b>", "<em>asked</em>", "<u>me</u>"):
        assert text not in html
        assert text.replace("<", "&lt;").replace(">", "&gt;") in html
    charts = re.findall(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    assert len(charts) == html.count("<figure") == 6
    assert not any("<" in chart for chart in charts)


def test_numbers_of_the_page_equal_the_summary(lender, hostile_lender):
    summary = summarise(hostile_lender[1].ledger)
    whole = summary.outcomes
    shown = tables(lender)
    assert shown["Outcomes so far"][1][0][1:] == [
        *(f"{n:,}" for n in (whole.accepted, whole.good, whole.bad)),
        *(f"{n:,}" for n in (whole.withdrawn, whole.pending)),
        percent(whole.fdr),
        *map(percent, whole.range),
        f"{200 * whole.good - 300 * whole.bad:,}".replace("-", "−"),
    ]
    rows = shown["By =<i>where"][1]
    assert [row[:3] for row in rows] == [
        [group.group or "(erased)", str(group.n_people), str(group.n_accepted)]
        for group in summary.groups
    ]
    codes = [part.text for part in sections(lender)["proof"].parts if isinstance(part, Code)]
    assert codes[0] == str(summary.head)
    assert codes[1] == f"fairchance verify --program main --checkpoint {summary.head}"


def test_the_first_screen_answers_the_questions(lender, hostile_lender):
    summary = summarise(hostile_lender[1].ledger)
    shown = cards(lender)
    assert shown["Mistakes"].value == percent(summary.outcomes.fdr)
    assert shown["Earned"].value == tables(lender)["Outcomes so far"][1][0][-1]
    assert shown["Pending"].value == str(summary.waiting().n)
    assert shown["Pending"].light == "amber"  # the first batch is 400 days old
    assert page(hostile_lender[1], late=1000.0).cards[-1].light == ""  # to come, and not late


@pytest.mark.parametrize(
    ("good", "bad", "light"),
    [(4000, 300, "green"), (90, 10, "green"), (80, 20, "amber"), (500, 500, "red")],
)
def test_the_first_screen_says_whether_the_bound_is_kept(hostile_lender, good, bad, light):
    shown = page(hostile_lender[1], outcomes=Outcomes(good, bad, 0, 0))
    card = cards(shown)["Mistakes"]
    assert (card.light, card.value) == (light, percent(bad / (good + bad)))
    assert (card.text.partition(" (")[0] in shown.verdict) == (light != "green")


def test_the_verdict_is_that_of_status(lender, hostile_lender):
    checks = check_health(summarise(hostile_lender[1].ledger))
    assert lender.verdict.startswith(verdict(checks))
    assert lender.light == worst_light(checks)


def test_checks_in_order_are_one_line(lender):
    """However many groups there are; what needs attention has a line each."""
    parts = sections(lender)["attention"].parts
    assert not any(isinstance(part, PageTable) for part in parts)
    assert sum(isinstance(part, str) for part in parts) == 2


def test_groups_above_the_bound_are_named(hostile_lender):
    groups = summarise(hostile_lender[1].ledger).groups
    worst = replace(groups[0], outcomes=Outcomes(100, 100, 0, 0))
    shown = page(hostile_lender[1], groups=(worst, *groups[1:]))
    card = cards(shown)["Groups"]
    assert card.value.startswith(worst.name)
    assert card.light == shown.light == "red"
    assert f"50 % of {worst.name}" in card.text


def test_groups_without_known_outcomes_are_not_called_within_the_bound(hostile_lender):
    groups = summarise(hostile_lender[1].ledger).groups
    known = cards(page(hostile_lender[1], groups=tuple(_known(group, 5, 0) for group in groups)))
    unknown = cards(page(hostile_lender[1], groups=tuple(_known(group, 0, 5) for group in groups)))
    assert known["Groups"].value != "–"
    assert unknown["Groups"].value == "–"


def _known(group, known, pending):
    """Return a group of which all were accepted."""
    n = group.n_people
    return replace(group, n_accepted=n, outcomes=Outcomes(known, 0, 0, pending))


@pytest.mark.parametrize("certify", ["overall", "per_group"])
def test_certified_program_shows_its_ladder(tmp_path, certify):
    url = f"sqlite:///{tmp_path}/certified.db"
    method = certified(certify=certify, utility=fc.Revenue(gain=200, loss=500))
    program, _, batches = started(url, method, n_rounds=3)
    for batch in batches:
        decided = program.decide(batch.people.X, sensitive_features=batch.people.group)
        if batch is batches[0]:
            early = page(program)
            assert early.figure is None  # no outcome is known
            assert cards(early)["Mistakes"].value == cards(early)["Earned"].value == "–"
            assert cards(early)["Certified"].value == "not yet"
        program.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
    shown = page(program)
    by_group = {}
    for batch in program.classifier.rounds_:
        by_group.setdefault(batch.group, []).append(batch)
    assert len(by_group) == (1 if certify == "overall" else 2)
    last = [records[-1] for records in by_group.values()]
    done = all(record.status == "certified" for record in last)
    assert (cards(shown)["Certified"].light == "green") == done
    titles, rows = tables(shown)["Earned at other bounds"]
    points = [
        ("" if record.group is None else f"{record.group}: ", point)
        for record in last
        for point in record.curve
    ]
    assert [row[0] for row in rows] == [f"{name}{percent(point.bound)}" for name, point in points]
    assert [row[2] for row in rows] == [percent(point.share) for _, point in points]
    kinds = ["certified" if point.certified else "estimate" for _, point in points]
    assert [row[1] for row in rows] == kinds
    assert titles[1] == "Policy"
    assert {"money", "trade-off", "ladder", "curve"} <= set(
        re.findall(r'<figure id="([^"]*)"', render("", [shown], ""))
    )


def test_certificates_that_were_lost_and_outcomes_that_are_missing(tmp_path):
    url = f"sqlite:///{tmp_path}/certified.db"
    program, _, (batch,) = started(url, certified(), n_rounds=1)
    program.decide(batch.people.X, sensitive_features=batch.people.group)
    (row,) = summarise(program.ledger).rounds
    record = replace(row.records[0], more_outcomes=41.2)

    def card(*statuses, **changed):
        rounds = tuple(
            replace(
                row,
                round=t + 1,
                certified=status == "certified",
                records=(replace(record, status=status, round=t + 1, **changed),),
            )
            for t, status in enumerate(statuses)
        )
        return cards(page(program, rounds=rounds))["Certified"]

    assert card("pilot").value == "not yet"
    assert "42" in card("pilot").text
    assert card("pilot", "certified", "certified").value == "yes"
    assert "round 2" in card("pilot", "certified", "certified").text
    lost = card("certified", "certified", "pilot", more_outcomes=float("nan"), next_n_tested=9)
    assert (lost.value, lost.light) == ("no longer", "amber")


def test_many_rounds_are_shown_together(hostile_lender):
    first = summarise(hostile_lender[1].ledger).rounds[0]
    names = ("certified", "pilot")
    rounds = tuple(replace(first, round=t + 1, status=names[t % 2]) for t in range(150))
    titles, rows = tables(page(hostile_lender[1], rounds=rounds))["Rounds"]
    assert (len(rows), rows[1][0]) == (50, "4–6")
    assert rows[1][titles.index("Status")] == "2 pilot, 1 certified"
    assert sum(count(titles, row, "Applied") for row in rows) == 150 * first.n_people
    assert sum(count(titles, row, "Bad") for row in rows) == 150 * first.outcomes.bad


BECAME = ("Not taken", "Good", "Bad", "Withdrawn", "Pending", "Overridden")


def test_outcomes_of_accepted_applicants_add_up(lender, hostile_lender):
    summary = summarise(hostile_lender[1].ledger)
    shown = tables(lender)
    titles, rows = shown["By =<i>where"]
    assert len(rows) == 4
    for row in rows:
        accepted = count(titles, row, "Accepted")
        assert sum(count(titles, row, name) for name in BECAME) == accepted
    for name, total in (
        ("Accepted", "n_accepted"),
        ("By hand", "n_by_hand"),
        ("Overridden", "n_set_apart"),
    ):
        assert sum(count(titles, row, name) for row in rows) == summary.total(total)
    titles, rows = shown["Rounds"]
    for row, value in zip(rows, summary.rounds, strict=True):
        accepted = count(titles, row, "Accepted")
        assert sum(count(titles, row, name) for name in BECAME) == accepted == value.n_accepted
    assert count(titles, rows[0], "By hand") == summary.total("n_by_hand") == 1
    titles, rows = shown["Outcomes so far"]
    apart = summary.total("n_accepted") - 1
    assert [count(titles, row, "Accepted") for row in (rows[0], rows[3])] == [apart, 1]


def test_rates_are_compared_with_the_highest(lender, hostile_lender):
    """As in the checks; the group of the highest rate is not compared with itself."""
    titles, rows = tables(lender)["By =<i>where"]
    ratio = {row[0]: row[titles.index("Of the highest")] for row in rows}
    checks = check_health(summarise(hostile_lender[1].ledger))
    found = {c.group: percent(c.value) for c in checks if c.question == "acceptance" and c.group}
    named = {name: value for name, value in ratio.items() if value != "–"}
    assert {f"=<i>where {name}": value for name, value in named.items()} == found
    assert ratio["(erased)"] == "–"


def test_settings_are_a_table_without_the_seed(lender, hostile_lender):
    rows = dict(tables(lender)["Settings"][1])
    assert rows["features"] == "score, id (text)"
    assert rows["protected attributes"] == "=<i>where"
    assert (rows["good outcomes"], rows["bad outcomes"]) == ("repaid", "lost")
    assert rows["started"].endswith(" UTC by <u>me</u>")
    assert rows["version"] == version("fairchance")
    assert rows["personal data is kept for"].startswith("25")
    settings = summarise(hostile_lender[1].ledger).promise.settings
    for name, value in settings.items():
        shown = value is not None and name != "random_state"
        assert (" ".join(str(value).split()) == rows.get(name)) == shown
    in_euros = page(hostile_lender[1], about={"currency": "EUR"})
    assert cards(in_euros)["Earned"].value == f"EUR {cards(lender)['Earned'].value}"


def test_reasons_of_rejections_equal_the_ledger(lender, hostile_lender):
    """The expected counts are made from single rows."""
    program, gone = hostile_lender[1], hostile_lender[3]
    with program.ledger.engine.connect() as connection:
        value = schema.people.c
        query = schema.people.select().where(value.round > 0).with_only_columns(value.reasons)
        kept = [row[0] for row in connection.execute(query) if row[0] is not None]
    names = read_details(program.ledger, summarise(program.ledger)).says["reference"]["names"]
    lists = [[name for name, _ in decode(row, names)] for row in kept]
    by_name, first = Counter(chain(*lists)), Counter(row[0] for row in lists if row)
    shown = tables(lender)["Columns"][1]
    assert [row[0] for row in shown] == [name for name, _ in by_name.most_common()]
    for name, n, part, as_first in shown:
        assert (int(n), int(as_first)) == (by_name[name], first[name])
        assert part == percent(by_name[name] / len(lists))
    refused = sum(int((~decided.accepted).sum()) for decided, *_ in hostile_lender[2])
    assert len(lists) == refused - 1  # one of those erased
    (table,) = (part for part in sections(lender)["reasons"].parts if isinstance(part, PageTable))
    assert f" {len(lists)} " in table.note
    assert len(gone) == 2


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
def test_outcomes_that_were_unlike_expected_stay_on_the_page(tmp_path):
    program, _, batches = started(f"sqlite:///{tmp_path}/x.db", algorithm_1(), 600)
    for one in batches[:5]:
        decided = program.decide(one.people.X, sensitive_features=one.people.group)
        ids, outcomes = decided.ids[decided.accepted], one.outcome[decided.accepted]
        wrong = decided.round == 1
        program.observe(ids, 1 - outcomes if wrong else outcomes, unlike_expected=wrong)
    assert not program.summary().unlike_outcomes  # of the last rounds
    shown = tables(page(program))
    ((where, what, said),) = shown["Differences"][1]
    events = {row[0]: row for row in shown["Events"][1]}
    event = events[where.removeprefix("Entry ")]
    assert (what, event[1], event[5]) == ("outcomes", "outcomes", said)


def test_events_are_listed_the_newest_first(lender, hostile_lender, tmp_path):
    titles, rows = tables(lender)["Events"]
    assert [row[1:3] for row in rows] == [
        ["erasure", "2"],
        ["override", "1"],
        ["override", "1"],
        ["withdrawal", "1"],
        ["outcomes", "17"],
        *[["round", "80"]] * 3,
    ]
    contents = [row[titles.index("Content")] for row in rows]
    assert contents[:4] == [
        "<em>asked</em>",
        "=HYPERLINK(1); decision now: accepted",
        "<img src=x>; decision now: rejected",
        "–",
    ]
    assert [said.partition(":")[0] for said in contents[5:]] == ["Round 3", "Round 2", "Round 1"]
    result = summarise(hostile_lender[1].ledger)
    says = {"what": "granted", "share": 0.10867669440199308, "group": ["<s>f</s>", "40+"]}
    says |= {"alpha": 0.15, "delta": 0.1, "log_wealth": 6.0817, "threshold": 5.7446, "round": 19}
    granted = RecordedChange("certificate", 61, "2028-07-15T09:00:00+00:00", "root", 0, says)
    lost = {"what": "dropped", "certificates": ["a", "b"], "group": None, "round": 20}
    dropped = replace(granted, entry=65, says=lost | {"why": "correction"})
    program, _, (batch,) = started(f"sqlite:///{tmp_path}/x.db", certified(), n_rounds=1)
    program.decide(batch.people.X, sensitive_features=batch.people.group)
    shown = page(
        hostile_lender[1],
        changes=(*result.changes, granted, dropped),
        rounds=(replace(result.rounds[0], records=program.summary().rounds[0].records),),
    )
    assert [row[1] for row in tables(shown)["Events"][1][:3]] == ["certificate"] * 2 + ["erasure"]
    assert [[row[0], *row[2:]] for row in tables(shown)["Certificates"][1]] == [
        ["19", "<s>f</s>, 40+", "15 July 2028"],
        ["20", "all", "15 July 2028"],
    ]
    given, taken = (row[1] for row in tables(shown)["Certificates"][1])
    assert all(text in given for text in ("10.9 %", "15 %", "6.08", "5.74"))
    assert taken.startswith("2 ")
    assert "<s>" not in render("", [shown], "")


def test_empty_columns_and_sections_are_left_out(lender, hostile_lender):
    optional = {"α by score", "Thresholds", "Overridden", "By hand"}
    assert optional <= set(tables(lender)["Rounds"][0])
    assert not {"certificate"} & set(sections(lender))
    result = summarise(hostile_lender[1].ledger)
    none = Outcomes(0, 0, 0, 0)
    (record,) = result.rounds[1].records
    plain = (replace(record, thresholds=(), alpha_exploit=math.nan),)
    rounds = tuple(replace(row, records=plain, overridden=none) for row in result.rounds[1:])
    shown = page(hostile_lender[1], rounds=rounds, groups=())
    assert not optional & set(tables(shown)["Rounds"][0])
    assert "groups" not in sections(shown)
    assert cards(shown)["Groups"].value == "–"


def test_program_without_rounds_or_utility(tmp_path):
    url = f"sqlite:///{tmp_path}/new.db"
    program, _, (batch,) = started(url, algorithm_1(utility=None), n_rounds=1)
    shown = page(program)
    assert (shown.cards, shown.figure) == ([], None)
    assert {"attention", "settings", "proof"} <= set(sections(shown))
    decided = program.decide(batch.people.X, sensitive_features=batch.people.group)
    assert cards(page(program))["Accepted"].value == percent(decided.accepted.mean())
    program.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
    known = summarise(program.ledger).outcomes.mistakes()
    assert percents((known.low, known.high)) in everything(page(program))
    assert cards(page(program))["Certified"].value == "no promise"
