"""What a catalogue knows of data before they are loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from secondlook.lab.datasets.checks import check_choice
from secondlook.lab.datasets.download import Progress
from secondlook.lab.datasets.folders import Folder
from secondlook.lab.simulate.finite import FiniteDomain
from secondlook.lab.simulate.people import Table

__all__ = ["Availability", "Entry", "Loader"]


@dataclass(frozen=True)
class Availability:
    """Whether data are here.

    Attributes
    ----------
    state
        ``"bundled"`` with the package, ``"found"`` on this machine, would be fetched
        (``"download"``), or ``"absent"`` and nowhere to be fetched from.
    where
        Path, address, or what to do.
    """

    state: Literal["bundled", "found", "download", "absent"]
    where: str

    def __str__(self) -> str:
        words = {"found": "found at", "download": "would be downloaded from", "absent": "not here:"}
        return f"{words.get(self.state, self.state)} {self.where}".strip()


class Loader(Protocol):
    """Loads data, for one way of grouping people."""

    def __call__(
        self, group: str, data: Folder, /, *, download: bool, progress: Progress | None
    ) -> Table | FiniteDomain:
        """Return a table, or a population."""


@dataclass(frozen=True)
class Entry:
    """What there is to know about data before they are loaded.

    Attributes
    ----------
    name, description, source, licence
        Words for people.
    groups
        Ways to group people, the usual one first.
    loader
        Called with group and folder.
    look
        Says for a folder whether the data are here.
    kind
        ``"table"`` of people, or ``"population"`` to draw people from.
    """

    name: str
    description: str
    source: str
    licence: str
    groups: tuple[str, ...]
    loader: Loader
    look: Callable[[Folder], Availability]
    kind: Literal["table", "population"] = "table"

    def available(self, data: Folder = None) -> Availability:
        """Say whether the data are bundled, found, or would be downloaded; fetches nothing."""
        return self.look(data)

    def load(
        self,
        group: str | None = None,
        data: Folder = None,
        *,
        download: bool = True,
        progress: Progress | None = None,
    ) -> Table | FiniteDomain:
        """Load the data; options are those of `catalogue.load`."""
        group = self.groups[0] if group is None else group
        check_choice(f"group of {self.name}", group, self.groups)
        return self.loader(group, data, download=download, progress=progress)
