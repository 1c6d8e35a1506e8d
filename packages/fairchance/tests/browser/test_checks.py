"""Each check of a page fails on a page that is broken in its way."""

from __future__ import annotations

import pytest

from browser.checks import chromium, problems

pytestmark = pytest.mark.xdist_group("browser")

SOUND = """<!doctype html><html lang="en" data-ready="yes"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>A page</title><style>
body { margin: 1em; color: #111; background: #fff } td { white-space: nowrap }
.frame { overflow-x: auto } .wide { width: 1500px }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #111 } }
@media print { .frame { overflow: visible } .wide { width: auto } }
</style></head><body><main><h1>A page</h1>
<div class="frame" tabindex="0" role="region" aria-label="A table">
<div class="wide">Wide</div></div>
<details><summary>More</summary>
<figure id="lines"><svg class="marks" width="250" height="200"><g class="role-mark"><path
 d="M10,10h20v20h-20Z"></path></g></svg></figure>
</details>
<div id="vg-tooltip-element"></div>
</main><script>
addEventListener("beforeprint", () => (document.querySelector("details").open = true));
document.querySelector("#lines path").addEventListener("mousemove", () => {
  const tooltip = document.querySelector("#vg-tooltip-element");
  tooltip.className = "visible";
  tooltip.textContent = "value 3";
});
</script></body></html>"""
LEGEND = '<g class="role-legend"><g class="role-legend-symbol"><path d="M9,9h9"/></g></g></svg>'
# What breaks the page, and what the check must find.
BROKEN = {
    "errors": ("</script>", "undefined_name();</script>", "undefined_name"),
    "requests": ("<h1>", '<img alt="" src="https://example.org/x.png"><h1>', "example.org"),
    "overflow": ("<h1>", '<b style="display: block; width: 700px">Wide</b><h1>', "<b> “Wide”"),
    "axe": ("<h1>", '<input type="text"><p style="color: #888">Faint</p><h1>', "light: label"),
    "contrast": ("</svg>", '<text y="50" fill="#777">Title</text></svg>', "contrast 4.5 of"),
    "print": (
        ".frame { overflow: visible } .wide { width: auto }",
        "",
        "<div.frame> “Wide” are cut",
    ),
    "folded": ('("beforeprint"', '("never"', "<figure#lines>"),
    "charts": ("</details>", '<figure id="none"></figure></details>', "<figure#none>"),
    "hover": ("value 3", "value", "lines shows no value"),
    "legend": ("</svg>", LEGEND, "lines: nothing fades"),
    "scripts": ("<h1>", "<script>window.pwned = 1</script><h1>", "text became an element"),
}


def found(browser, tmp_path, text):
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    return problems(browser, path)


@pytest.mark.long
def test_there_is_a_browser():
    assert chromium() is not None, "run `make browser`, without which no page is checked"


def test_a_sound_page_has_no_problems(browser, tmp_path):
    assert found(browser, tmp_path, SOUND) == {}


def test_each_check_finds_what_is_broken(browser, tmp_path):
    text = SOUND
    for before, after, _ in BROKEN.values():
        assert before in text
        text = text.replace(before, after)
    result = found(browser, tmp_path, text)
    assert set(result) == set(BROKEN)
    for check, (*_, expected) in BROKEN.items():
        assert any(expected in problem for problem in result[check]), (check, result[check])
