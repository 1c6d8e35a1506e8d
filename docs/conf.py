"""Settings of the site: ``make site`` builds all of it, a test a quick form without the gallery."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import fairchance  # noqa: E402

project = "fairchance"
author = "The fairchance developers"
project_copyright = f"{author}. Licence: Apache-2.0"
version = release = fairchance.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "sphinx_llms_txt",
    "api",  # these three are in _ext
    "generated",
    "mathml",
]
exclude_patterns = ["_build", "_ext", "**/*.ipynb_checkpoints", "gallery/*.py", "gallery/*.ipynb"]
exclude_patterns += ["gallery/*.zip", "gallery/*.json", "gallery/sg_execution_times.rst"]
exclude_patterns += ["sg_execution_times.rst", "gallery/uses"]
templates_path = ["_templates"]
nitpicky = True
smartquotes = False
highlight_language = "none"  # a block that names no language shows what a terminal prints

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # `make tutorial` runs the notebook; other examples are doctests
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
toc_object_entries_show_parents = "hide"
autodoc_default_options = {"member-order": "bysource"}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/uses",
    "doc_module": ("fairchance", "fairchance_lab"),
    "image_scrapers": ("charts.scrape",),
    "reset_modules": (),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "copyfile_regex": r".*\.toml",
    "min_reported_time": 1_000_000,  # how long an example takes says more about the machine
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "fairchance"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/favicon.svg"
html_copy_source = True  # of which sphinx-llms-txt makes llms.txt
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "collapse_navigation": True,  # otherwise arrows without a name for screen readers
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "search_as_you_type": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "releases": []}

llms_txt_summary = (
    "fairchance decides who to accept when outcomes are seen of the accepted only, with a "
    "certified bound on mistakes: a Python library, a command line and a service."
)
llms_txt_exclude = ["search", "genindex", "gallery/*", "tutorial"]  # pictures as text
