"""Data sets: bundled, downloaded, or read from your own files."""

from secondlook.lab.datasets.acs import load_acs_income
from secondlook.lab.datasets.catalogue import CATALOGUE, load
from secondlook.lab.datasets.fico import load_fico
from secondlook.lab.datasets.files import read_table
from secondlook.lab.datasets.german import load_german

__all__ = ["CATALOGUE", "load", "load_acs_income", "load_fico", "load_german", "read_table"]
