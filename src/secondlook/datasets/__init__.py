"""Data sets under one roof: bundled, downloaded, or read from files of your own."""

from secondlook.datasets.acs import load_acs_income
from secondlook.datasets.catalogue import CATALOGUE, load
from secondlook.datasets.fico import load_fico
from secondlook.datasets.files import read_table
from secondlook.datasets.german import load_german

__all__ = ["CATALOGUE", "load", "load_acs_income", "load_fico", "load_german", "read_table"]
