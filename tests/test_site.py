"""The site builds without a warning: every link leads somewhere, every name has its page."""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from sphinx.util.inventory import InventoryFile

import fairchance
import fairchance_lab
from browser.checks import WIDTHS
from fairchance import audit, ledger, plot
from fairchance.cli.app import COMMANDS
from fairchance.cli.options import EXIT_CODES
from fairchance.ledger.config import _TABLES
from fairchance.methods.options import CLASSIFIERS
from fairchance_lab import plot as lab_plot

pytestmark = pytest.mark.xdist_group("site")  # which is built once
ROOT = Path(__file__).parents[1]


WORDS = {  # what readers type, and a page that must be among the first three answers
    "not taken up": "guide/late.html",
    "year late outcomes": "guide/late.html",
    "shadow": "gallery/plot_11_ramp.html",
    "exit code": "run/exit-codes.html",
}
ALIKE = ("Program.html", "ramp.html")  # one of each kind of many pages
# Broken in each way that the check must find.
BROKEN = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Broken</title>
</head><body><main><h1>Broken</h1><div style="width: 1500px">Wide</div>
<img src="missing.png" alt="">
<p style="color: #999; background: #fff">Faint</p><img src="https://example.org/x.png" alt="">
<script>console.error("broken")</script></main></body></html>"""


def build(top, *options):
    """Build the site of a copy of the pages in a folder; warnings are errors."""
    made = shutil.ignore_patterns("gallery", "api", "sg_execution_times.rst", "__pycache__")
    shutil.copytree(ROOT / "docs", top / "docs", ignore=made)
    for name in ("examples", "deploy"):
        shutil.copytree(ROOT / name, top / name)
    for page in ROOT.glob("*.md"):
        shutil.copy(page, top)
    words = ["-q", "-W", "--keep-going", *options, top / "docs", top / "site"]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, check=False
    )
    assert built.stderr == ""
    assert built.returncode == 0
    return top / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site without running the gallery."""
    return build(tmp_path_factory.mktemp("quick"), "-D", "plot_gallery=0")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Build the whole site and serve it; return its folder and its address."""
    folder = build(tmp_path_factory.mktemp("whole"))
    (folder / "broken.html").write_text(BROKEN)
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    """Serve files and say nothing."""

    def log_message(self, *words):
        """Leave out the line of each request."""


def look_at(page, address, name):
    """Return what is wrong with a page, as the kind of problem and a text."""
    found = []
    heard = {
        "console": lambda line: line.type in ("error", "warning") and found.append(line.text),
        "pageerror": lambda error: found.append(str(error)),
        "response": lambda answer: answer.status >= 400 and found.append(f"missing {answer.url}"),
        "request": lambda asked: (
            asked.url.startswith((address, "data:")) or found.append(f"asks {asked.url}")
        ),
    }
    for event, listener in heard.items():
        page.on(event, listener)
    page.goto(address + name)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"wider than {width}")
    for event, listener in heard.items():
        page.remove_listener(event, listener)
    return found


def read_aloud(page, scheme):
    """Return what axe-core finds serious on the page that is open."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.wait_for_timeout(300)  # colours change slowly
    options = {"resultTypes": ["violations"], "preload": False}
    if scheme == "dark":
        options["runOnly"] = ["color-contrast"]
    return [
        f"{scheme}: {finding['id']} {node['target']}"
        for finding in Axe().run(page, None, options).response["violations"]
        if finding["impact"] in ("serious", "critical")
        for node in finding["nodes"]
    ]


@pytest.mark.long
def test_pages_fit_are_complete_and_can_be_read_aloud(address, browser):
    folder, url = address
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("*.html")}
    pages = sorted(name for name in pages if not name.startswith("_static/"))
    assert len(pages) > 150
    problems = {}
    with browser.new_page() as page:
        for name in pages:
            problems[name] = look_at(page, url, name)
            # Pages of the API, and those of examples, are all made in the same way.
            if not ("/api/" in name or "plot_" in name) or name.endswith(
                ("Program.html", "ramp.html")
            ):
                for scheme in ("light", "dark"):
                    problems[name] += read_aloud(page, scheme)
    broken = " ".join(problems.pop("broken.html"))
    for kind in ("wider than 390", "missing", "asks https://example.org", "broken", "contrast"):
        assert kind in broken
    assert {name: found for name, found in problems.items() if found} == {}


@pytest.mark.long
def test_the_search_finds_what_readers_type(address, browser):
    _, url = address
    with browser.new_page() as page:
        for words, wanted in WORDS.items():
            page.goto(f"{url}index.html")
            page.keyboard.press("Control+k")
            page.keyboard.type(words)
            page.keyboard.press("Enter")
            page.wait_for_url("**/search.html?q=*")
            page.get_by_text("Search finished").wait_for()
            links = page.locator("#search-results li > a").all()[:3]
            answers = [link.get_attribute("href").partition("#")[0] for link in links]
            assert wanted in answers, (words, answers)


def test_each_public_name_has_a_page(site):
    packages = (fairchance, audit, ledger, plot, fairchance_lab, lab_plot)
    names = {f"{package.__name__}.{name}" for package in packages for name in package.__all__}
    assert len(names) > 90
    found = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    known = {name for kind in found.values() for name in kind}
    assert names - known == set()


def test_public_names_that_are_called_have_an_example():
    records = (
        "Policy Evaluation Group Finding Measure TakeUp Unknown Verification Round Correction Curve"
    )
    for package in (fairchance, audit, fairchance_lab):
        for name in package.__all__:
            if not any(word in name for word in (*records.split(), "Decisions")):
                assert ">>> " in inspect.getdoc(getattr(package, name)), name


def test_each_command_and_each_exit_code_is_on_a_page(site):
    text = "".join(page.read_text() for page in site.glob("reference/commands/*.html"))
    assert [name for name in COMMANDS if f'id="{name}"' not in text] == []
    codes = (site / "run" / "exit-codes.html").read_text()
    assert [code for code in EXIT_CODES if f"<p>{code}</p>" not in codes] == []


def test_each_key_of_a_program_is_on_a_page(site):
    text = (site / "reference" / "configuration.html").read_text()
    keys = [key for table in (*_TABLES.values(), *CLASSIFIERS.values()) for key in table]
    assert len(keys) > 50
    assert [key for key in keys if f">{key}</span>" not in text] == []
