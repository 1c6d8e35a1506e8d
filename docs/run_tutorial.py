"""Run docs/tutorial.ipynb and store what it shows: ``make tutorial``."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

path = Path(__file__).with_name("tutorial.ipynb")
notebook = nbformat.read(path, 4)
NotebookClient(notebook, record_timing=False).execute()
nbformat.write(notebook, path)
