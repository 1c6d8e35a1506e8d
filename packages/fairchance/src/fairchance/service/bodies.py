"""What is sent and answered, besides applications: the models of the API's description."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from fairchance.service.doors import Limits
from fairchance.service.strict import Many, Strict

__all__ = [
    "Decision",
    "DecisionList",
    "Erasures",
    "Holds",
    "OutcomeList",
    "Overrides",
    "Ramp",
    "Recorded",
]
__all__ += ["Problem"]

_Ids = Annotated[list[StrictStr | StrictInt], Many(Limits.rows)]
_Reason = Annotated[
    StrictStr,
    Field(min_length=1, max_length=1000, description="It is never erased: name no applicant."),
]

_Line = Annotated[StrictStr, Field(min_length=1, max_length=200)]


class Outcome(Strict):
    """What became of an accepted applicant."""

    id: StrictStr | StrictInt
    outcome: Literal["good", "bad", "not_taken", "withdrawn"]


class OutcomeList(Strict):
    """Outcomes of accepted applicants, in any order."""

    outcomes: Annotated[list[Outcome], Many(Limits.rows)]
    unlike_expected: StrictBool = Field(
        False, description="Record them although good and bad look exchanged."
    )


class Overrides(Strict):
    """A person's decision instead of the program's."""

    ids: _Ids
    accepted: StrictBool | None = Field(description="The new decision; null undoes an override.")
    reason: _Reason


class Holds(Strict):
    """Applicants who must not be erased, or no longer."""

    ids: _Ids
    held: StrictBool = Field(True, description="False ends all holds on them.")
    reason: _Reason


class Erasures(Strict):
    """Applicants who are erased for good."""

    ids: _Ids
    reason: _Reason
    early: StrictBool = Field(False, description="Also before their retention period is over.")


class Ramp(Strict):
    """The share of applicants on whom the program decides."""

    ramp: StrictFloat = Field(ge=0, le=1, examples=[0.2])


class MadeElsewhere(Strict):
    """Decisions that were made by a round's policy, when and where."""

    round: StrictInt = Field(ge=1, lt=2**31)
    at: _Line = Field(examples=["2032-02-18"])
    where: _Line = Field(examples=["branch 7"])


class Reason(BaseModel):
    """A column that lowered the score."""

    column: str
    contribution: float
    code: str | None
    text: str | None


class Decision(BaseModel):
    """A recorded decision."""

    id: str | int
    decision: Literal["accept", "reject"]
    region: Literal["exploit", "explore"]
    propensity: float
    score: float | None
    threshold: float | None
    round: int
    ramp: float
    status: str
    certified: bool
    incumbent: bool | None
    barred: bool | None
    reasons: list[Reason] | None
    letter: str | None
    receipt: str | None


class DecisionList(BaseModel):
    """Decisions in the order of the applications."""

    decisions: list[Decision]


class ImportedList(DecisionList):
    """Decisions, and whether they were made after their round; null if a day does not tell."""

    after_close: bool | None


class RecordedEntry(BaseModel):
    """An entry of the record."""

    entry: int
    kind: str
    n: int
    at: str
    by: str


class Warned(BaseModel):
    """Something that is left to do."""

    code: str
    detail: str


class Recorded(BaseModel):
    """What is on record under the request's name."""

    request: str | None
    entries: list[RecordedEntry]
    warnings: list[Warned] = Field([], description="Of an erasure: files that may still hold data.")


class Controls(BaseModel):
    """How much the program decides."""

    ramp: float
    paused: bool


class Listed(BaseModel):
    """A decision in a list; ``accepted`` is what is in force, with overrides."""

    id: str | int
    round: int
    decision: Literal["accept", "reject"]
    region: Literal["exploit", "explore"]
    propensity: float | None
    overridden: bool
    accepted: bool
    outcome: str | None
    receipt: str


class DecisionPage(BaseModel):
    """Some decisions, and the cursor of the next page; null at the end."""

    decisions: list[Listed]
    next: int | None


class File(BaseModel):
    """All that is on record about an application."""

    id: str | int
    person: int
    erased: dict[str, Any] | None
    features: dict[str, Any]
    groups: dict[str, Any] | None
    decision: dict[str, Any]
    accepted: bool
    round: dict[str, Any]
    overrides: list[dict[str, Any]]
    outcomes: list[dict[str, Any]]
    holds: list[dict[str, Any]]
    kept_until: str | None
    proof: dict[str, Any]


class Rounds(BaseModel):
    """The rounds of a program."""

    open: dict[str, Any] | None
    rounds: list[dict[str, Any]]


class Problem(BaseModel):
    """An error."""

    type: str
    title: str
    status: int
    code: str
    option: str | None
    detail: str
    errors: list[dict[str, Any]] = []
