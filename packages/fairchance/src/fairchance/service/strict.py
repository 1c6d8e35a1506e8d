"""Reading JSON at a bounded cost: mistakes are collected only as far as they are listed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, model_validator
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

__all__ = ["MOST_ERRORS", "Many", "Strict"]

MOST_ERRORS = 100  # that are listed
_PIECE = 10  # elements of a list that are read together


class Strict(BaseModel):
    """An object without other keys than its fields; of those that it has, some are looked at."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _with_few_keys(cls, value: Any) -> Any:
        if not isinstance(value, dict) or len(value) <= len(cls.model_fields) + MOST_ERRORS:
            return value
        names = {one.alias or name for name, one in cls.model_fields.items()}
        others = islice((name for name in value if name not in names), MOST_ERRORS)
        return {name: value[name] for name in [*names & value.keys(), *others]}


@dataclass(frozen=True)
class Many:
    """Says of a list that it has one to so many elements."""

    most: int

    def __get_pydantic_core_schema__(self, kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return how such a list is read."""
        as_list: Any = {**handler(kind), "min_length": 1, "max_length": self.most}
        return core_schema.no_info_wrap_validator_function(self._read, as_list)

    def _read(self, values: Any, read: core_schema.ValidatorFunctionWrapHandler) -> Any:
        """Read the elements of a list in pieces, until there are enough mistakes."""
        if not isinstance(values, list) or len(values) <= _PIECE:
            return read(values)
        if len(values) > self.most:
            about = {"field_type": "List", "max_length": self.most, "actual_length": len(values)}
            raise PydanticKnownError("too_long", about)
        elements: list[Any] = []
        errors: list[Any] = []
        for first in range(0, len(values), _PIECE):
            try:
                elements += read(values[first : first + _PIECE])
            except ValidationError as error:
                for one in error.errors(include_url=False):
                    at, *inside = one["loc"]
                    errors.append({**one, "loc": (int(at) + first, *inside)})
                if len(errors) >= MOST_ERRORS:
                    break
        if errors:
            raise ValidationError.from_exception_data("list", errors)
        return elements
