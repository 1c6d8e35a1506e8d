"""``secondlook report`` on a ledger: the page shows hostile text and runs none of it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from importlib.metadata import version
from itertools import chain

import pytest

from cli.hostile_lender import run
from secondlook.cli.pages.report import page
from secondlook.ledger import schema
from secondlook.ledger.summary import Change, read_details, spans, summarise
from secondlook.people.reasons import decode

VOID = {"meta", "br", "link"}


class Page(HTMLParser):
    """Collects tags, ids and links, and checks that tags are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.svgs = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [v for k, v in attrs.items() if k in ("href", "src", "xlink:href")]
        self.svgs += [attrs] if tag == "svg" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(program):
    """Return the parsed page."""
    summary = summarise(program.ledger)
    return summary, read_details(program.ledger, summary)


def tables(html):
    """Return each table by its title: the titles of its columns, and its rows as text."""
    result = {}
    for text in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        title = unescape(re.search(r"<strong>(.*?)\.</strong>", text)[1])
        rows = [
            [unescape(value) for value in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
            for row in re.findall(r"<tr>.*?</tr>", text, re.DOTALL)
        ]
        result[title] = rows[0], rows[1:]
    return result


def count(titles, row, name):
    """Return a count in a row; 0 if there is no such column."""
    return int(row[titles.index(name)].replace(",", "")) if name in titles else 0


@pytest.fixture(scope="module")
def html(hostile_lender, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "lender.html"
    result = run("report", "--ledger", hostile_lender[0], "-o", path)
    assert str(path) in result.stdout
    return path.read_text(encoding="utf-8")


def test_page_is_a_single_well_formed_file(html):
    result = Page(html)
    assert result.open == []
    assert len(result.ids) == len(set(result.ids))
    assert all(link.startswith("#") and link[1:] in result.ids for link in result.links)
    assert not {"script", "link", "img", "b", "i", "u", "em"} & set(result.tags)
    assert not re.findall(r"url\((?!#)|@import", html)
    # FDR, outcomes, worth, decisions and one attribute
    assert len(result.svgs) == 5
    assert all(svg["role"] == "img" and len(svg["aria-label"]) > 40 for svg in result.svgs)
    assert result.tags.count("figcaption") == len(result.svgs)
    assert result.tags.count("caption") == result.tags.count("table") == 7


def test_hostile_text_is_shown_and_escaped(html):
    for text in ("<script>alert(1)</script>", "<b>2</b>", "<em>asked</em>", "<u>me</u>"):
        assert text not in html
        assert text.replace("<", "&lt;").replace(">", "&gt;") in html
    assert html.count("$x^{$") >= 3  # in the table, in the words and in the picture


def test_numbers_of_the_page_equal_the_summary(html, hostile_lender):
    summary = summarise(hostile_lender[1].ledger)
    whole = summary.outcomes
    low, high = whole.interval
    cells = [
        f"{whole.accepted:,}",
        f"{whole.good:,}",
        f"{whole.bad:,}",
        f"{whole.indeterminate:,}",
        f"{whole.pending:,}",
        f"{whole.fdr:.3f}",
        f"{low:.3f}–{high:.3f}",
        *(f"{end:.3f}" for end in whole.range),
        f"{200 * whole.good - 300 * whole.bad:,}".replace("-", "−"),
    ]
    row = "".join(f"<td>{text}</td>" for text in cells)
    assert f'<th scope="row">All but overrides</th>{row}' in html
    for group in summary.groups:
        name = "(erased)" if group.group is None else group.group.replace("&", "&amp;")
        name = name.replace("<", "&lt;").replace(">", "&gt;")
        row = f'<th scope="row">{name}</th><td>{group.n_people}</td><td>{group.n_accepted}</td>'
        assert row in html
    assert html.count(str(summary.head)) == 2
    assert "Checkpoint, not verified here:" in html
    assert "secondlook verify --program main --checkpoint" in html


@pytest.mark.parametrize("certify", ["overall", "per_group"])
def test_certified_program_shows_its_ladder(tmp_path, certify):
    from ledger_worlds import certified, started  # noqa: PLC0415

    url = f"sqlite:///{tmp_path}/certified.db"
    program, _, batches = started(url, certified(certify=certify), n_rounds=3)
    for batch in batches:
        decided = program.decide(batch.people.X, sensitive_features=batch.people.group)
        program.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
    text = page(*read(program), 180.0)
    assert 'id="figure-certificate"' in text
    assert "raise alpha" not in text
    by_group = {}
    for batch in program.classifier.rounds_:
        by_group.setdefault(batch.group, []).append(batch.status == "certified")
    assert len(by_group) == (1 if certify == "overall" else 2)
    for group, flags in by_group.items():
        whom = "" if group is None else f" for group {group}"
        assert f"{sum(flags)} of 3 rounds are certified{whom}," in text
    assert Page(text).open == []
    titles, rows = tables(text)["Earned at other bounds"]
    assert titles == ["Bound", "Best share", "Earned per applicant", "Estimated FDR", "Certified"]
    points = [
        ("" if record.group is None else f"{record.group}: ", point)
        for record in program.classifier.rounds_[-len(by_group) :]
        for point in record.curve
    ]
    assert [row[0] for row in rows] == [f"{name}{point.bound:.3g}" for name, point in points]
    assert [row[4] for row in rows] == ["yes" if point.certified else "no" for _, point in points]
    assert [row[1] for row in rows] == [f"{point.share:.1%}" for _, point in points]


def test_many_rounds_are_grouped(hostile_lender):
    summary = summarise(hostile_lender[1].ledger)
    first = summary.rounds[0]
    rounds = tuple(replace(first, round=t + 1, certified=t % 2 == 0) for t in range(150))
    runs = spans(rounds)
    assert len(runs) == 50
    assert sum(value.total("n_people") for value in runs) == 150 * first.n_people
    assert sum(item.outcomes.bad for item in runs) == 150 * first.outcomes.bad
    assert (runs[1].name, runs[1].middle, runs[1].promise) == ("4–6", 5.0, "1 of 3 certified")
    assert [span.name for span in spans(rounds[:60])] == [f"{t + 1}" for t in range(60)]
    _, more = read(hostile_lender[1])
    text = page(replace(summary, rounds=rounds), more, 180.0)
    assert '<th scope="row">4–6</th>' in text
    assert "Runs of rounds are shown together." in text


BECAME = ("Good", "Bad", "Never known", "Pending", "Overridden")


def test_outcomes_of_accepted_applicants_add_up(html, hostile_lender):
    summary = summarise(hostile_lender[1].ledger)
    shown = tables(html)
    titles, rows = shown["Groups by =<i>where"]
    assert len(rows) == 4
    for row in rows:
        accepted = count(titles, row, "Accepted")
        assert sum(count(titles, row, name) for name in BECAME) == accepted
    for name, total in (("Accepted", "n_accepted"), ("By hand", "n_by_hand")):
        assert sum(count(titles, row, name) for row in rows) == summary.total(total)
    assert (
        sum(count(titles, row, "Overridden") for row in rows) == summary.total("n_set_apart") == 1
    )
    titles, rows = shown["Rounds"]
    for row, value in zip(rows, summary.rounds, strict=True):
        accepted = count(titles, row, "Exploited") + count(titles, row, "Explored")
        assert sum(count(titles, row, name) for name in BECAME) == accepted == value.n_accepted
    assert count(titles, rows[0], "By hand") == summary.total("n_by_hand") == 1
    n, apart = summary.total("n_accepted"), summary.outcomes.accepted
    assert apart == n - 1
    assert re.search(rf"{n} accepted, \d+ of them explored and 1 once overridden, besides 1 ", html)
    titles, rows = shown["Outcomes so far"]
    assert [count(titles, row, "Accepted") for row in (rows[0], rows[3])] == [apart, 1]


def test_rates_are_compared_with_the_highest(html):
    titles, rows = tables(html)["Groups by =<i>where"]
    rates = {row[0]: count(titles, row, "Accepted") / count(titles, row, "Applied") for row in rows}
    rates.pop("(erased)")
    ratio = {row[0]: row[titles.index("Of the highest")] for row in rows}
    assert ratio.pop("(erased)") == "–"
    assert ratio == {name: f"{value / max(rates.values()):.3f}" for name, value in rates.items()}
    assert len(set(ratio.values())) > 1


def test_page_shows_the_settings_without_the_seed(html, hostile_lender):
    rows = dict(tables(html)["Settings"][1])
    assert rows["Features"] == "score, id (text)"
    assert rows["Protected attributes"].startswith("=<i>where; mode aware: a decision may depend")
    assert rows["A good outcome"] == "'repaid'"
    assert rows["A bad outcome"] == "'lost'"
    assert rows["Learner"].startswith("Pipeline(steps=[('columntransformer', ")
    assert rows["Started"].endswith(f" by <u>me</u>, with secondlook {version('secondlook')}")
    assert rows["Data of people are kept"].startswith("25 months")
    assert rows["α, the bound on the share of bad"] == "0.15"
    assert "accept_good=200" in rows["Worth of decisions"]
    assert "thresholds = " in rows["Other settings"]
    assert "random_state" not in rows["Other settings"]
    more = read(hostile_lender[1])[1]
    assert "random_state" in more.says["settings"]


def test_reasons_of_rejections_equal_the_ledger(html, hostile_lender):
    """The expected counts are made from single rows."""
    program, gone = hostile_lender[1], hostile_lender[3]
    with program.ledger.engine.connect() as connection:
        value = schema.people.c
        query = schema.people.select().where(value.round > 0).with_only_columns(value.reasons)
        kept = [row[0] for row in connection.execute(query) if row[0] is not None]
    names = read(program)[1].says["reference"]["names"]
    lists = [[name for name, _ in decode(row, names)] for row in kept]
    by_name, first = Counter(chain(*lists)), Counter(row[0] for row in lists if row)
    shown = tables(html)["Reasons of rejections"][1]
    assert [row[0] for row in shown] == [name for name, _ in by_name.most_common()]
    for name, n, part, as_first in shown:
        assert (int(n), int(as_first)) == (by_name[name], first[name])
        assert part == f"{by_name[name] / len(lists):.3f}"
    refused = sum(int((~decided.accepted).sum()) for decided, *_ in hostile_lender[2])
    assert len(lists) == refused - 1  # one of those erased
    assert f"For {len(lists)} people rejected by the program" in html
    assert len(gone) == 2


def test_withdrawals_are_listed_as_changes_and_certificates_are_not(html, hostile_lender):
    program = hostile_lender[1]
    titles, rows = tables(html)["Changes"]
    assert [row[1:3] for row in rows] == [
        ["withdrawal", "1"],
        ["override", "1"],
        ["override", "1"],
        ["erasure", "2"],
    ]
    assert [row[titles.index("Content")] for row in rows] == [
        "–",
        "<img src=x>; stands: rejected",
        "=HYPERLINK(1); stands: accepted",
        "<em>asked</em>",
    ]
    result, more = read(program)
    says = {"what": "granted", "share": 0.10867669440199308, "group": ["<s>f</s>", "40+"]}
    says |= {"alpha": 0.15, "delta": 0.1, "log_wealth": 6.0817, "threshold": 5.7446, "round": 19}
    granted = Change("certificate", 61, "2028-07-15T09:00:00+00:00", "root", 0, says)
    lost = {"what": "dropped", "certificates": ["a", "b"], "group": None, "round": 20}
    dropped = replace(granted, entry=65, says=lost | {"why": "correction"})
    records = {"log_wealth": 1.0, "group": None, "status": "pilot", "round": 1, "message": ""}
    records |= {"ladder": 0, "share": 0.1, "threshold": 5.0, "next_share": 0.1}
    records |= {"certified_from": float("nan"), "certified_to": float("nan")}
    records |= {"next_log_wealth": 1.0, "next_threshold": 5.0, "delta_spent": 0.01}
    with_tests = replace(
        result,
        changes=(*result.changes, granted, dropped),
        rounds=(replace(result.rounds[0], records=(records,)),),
    )
    text = page(with_tests, more, 180.0)
    shown = tables(text)
    assert [row[0] for row in shown["Changes"][1]] == [row[0] for row in rows]
    assert shown["Certificates"][1] == [
        ["61", "2028-07-15T09:00", "19", "<s>f</s>, 40+", GRANTED],
        ["65", "2028-07-15T09:00", "20", "all", DROPPED],
    ]
    assert "<s>" not in text


GRANTED = "The best 10.9% are certified at α = 0.15 and δ = 0.1: evidence 6.08, needed 5.74"
DROPPED = "2 certificates were dropped after a correction"


def test_empty_columns_are_left_out(html, hostile_lender):
    titles = tables(html)["Rounds"][0]
    assert {"α exploited", "Thresholds", "Overridden", "By hand"} <= set(titles)
    assert "Thresholds: the scores" in html
    result, more = read(hostile_lender[1])
    whole = tuple(
        replace(value, records=({"calibrated": True},), n_by_hand=0) for value in result.rounds[1:]
    )
    text = page(replace(result, rounds=whole), more, 180.0)
    titles = tables(text)["Rounds"][0]
    assert not {"α exploited", "Thresholds", "Overridden", "By hand"} & set(titles)
    assert "Thresholds: the scores" not in text
    assert {"Batch", "Good", "FDR"} <= set(titles)
