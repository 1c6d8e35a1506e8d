"""The documentation names files, tests and commands that exist."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path

import pytest

from fairchance_lab.baselines import base
from fairchance_lab.experiments.methods import values_of
from fairchance_lab.paper.released import count_deviations

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "packages"
CODE = (ROOT, PACKAGES / "fairchance" / "src" / "fairchance", PACKAGES / "fairchance-lab" / "src")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize(("page", "n"), [("guarantees", 50), ("experiments", 80)])
def test_pages_name_tests_and_code_that_exist(page, n):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    tests = re.findall(r"`((?:[a-z0-9_]+/)*test_\w+\.py)(?:::(\w+))?`", text)
    assert len(tests) > n
    for path, name in tests:
        files = [*ROOT.glob(f"tests/{path}"), *PACKAGES.glob(f"*/tests/{path}")]
        sources = [file.read_text(encoding="utf-8") for file in files]
        assert any(not name or f"def {name}(" in source for source in sources), f"{path}::{name}"
    for path in re.findall(r"`((?:[a-z0-9_]+/)+(?!test_)\w+\.py)`", text):
        assert any((top / path).is_file() for top in CODE), path


def test_every_row_of_the_fidelity_table_names_code_and_a_test():
    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    table = text.partition("## Fidelity to the paper")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    rows = [row for row in rows[1:] if "**" not in row[0]]
    assert 50 <= len(rows) <= 100
    for paper, code, verified, deviation in rows:
        assert ".py`" in code, paper
        assert "::test_" in verified, paper
        assert deviation.strip(), paper


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_architecture_names_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:[a-z0-9_]+/)+\w+\.py)`", text):
        assert any((top / path).is_file() for top in CODE), path


def test_the_experiments_page_counts_the_findings_about_the_released_code():
    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    assert count_deviations() in " ".join(text.split())


def test_the_methods_page_has_the_values_of_settings_and_their_sources():
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    table = text.partition("## Where the values come from")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", table, re.MULTILINE)
    assert len(rows) >= 7
    for name, cells in rows:
        values = sorted(values_of(name).items())
        shown = [
            ", ".join(
                f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
                for key, (value, source) in values
                if source in column
            )
            for column in ((base.CODE, base.PAPER), (base.ICML,), (base.RELEASED,), (base.OURS,))
        ]
        assert cells.split(" | ") == [cell or "–" for cell in shown], name


def test_each_neighbour_is_listed_with_how_far_it_could_be_read():
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8").partition("## Neighbours")[2]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if "arXiv" in line]
    ids = ["2406.10490", "2605.20270", "2506.14067", "2509.03297", "2512.22313", "2606.18479"]
    assert [re.findall(r"arXiv (\d{4}\.\d{5})", row[0]) for row in rows] == [[i] for i in ids]
    for paper, *parts, read in rows:
        assert len(parts) == 3, paper
        assert "abstract" in read, paper


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 80


def test_hints_name_extras_that_exist():
    extras = {
        name: tomllib.loads((PACKAGES / name / "pyproject.toml").read_text())["project"][
            "optional-dependencies"
        ]
        for name in ("fairchance", "fairchance-lab")
    }
    texts = [*PACKAGES.glob("*/src/**/*.py"), *PAGES, ROOT / "Makefile"]
    hints = []
    for text in (path.read_text(encoding="utf-8") for path in texts if path.stem != "CHANGELOG"):
        called = re.findall(r"to_install\(['\"]([a-z]+)['\"](?:, ['\"]([a-z-]+)['\"])?\)", text)
        hints += [(package or "fairchance", extra) for extra, package in called]
        hints += re.findall(r"'(?:packages/)?(fairchance(?:-lab)?)\[([a-z]+)\]'", text)
        assert "pip install '." not in text  # the checkout itself is no package
    assert len(hints) > 10
    assert [hint for hint in hints if hint[1] not in extras[hint[0]]] == []


def test_floors_are_the_lowest_versions_that_the_packages_allow():
    lines = (ROOT / "floors.txt").read_text().splitlines()
    floors = dict(line.split("==") for line in lines if not line.startswith("#"))
    allowed = {}
    for file in ROOT.glob("packages/*/pyproject.toml"):
        project = tomllib.loads(file.read_text())["project"]
        extras = {k: v for k, v in project["optional-dependencies"].items() if k != "dev"}
        for need in itertools.chain(project["dependencies"], *extras.values()):
            found = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", need)
            if found:
                allowed[found[1]] = found[2]
    assert floors == allowed
