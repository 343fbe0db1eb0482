"""Builds models of the protocol from values that were read before.

Half a surrogate pair is a string in JSON and in Python, and JavaScript producers end deltas in one; pydantic refuses it.
Knows that one exception; does not know the models.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)


def is_about_halves(error: ValidationError) -> bool:
    """Whether halves of surrogate pairs are the only errors."""
    return all(detail["type"] == "string_unicode" for detail in error.errors(include_url=False))


def built(model: type[Model], **fields: Any) -> Model:
    """The model of these fields, which come from events that were read: only halves are accepted unchecked."""
    try:
        return model(**fields)
    except ValidationError as error:
        if not is_about_halves(error):
            raise
        return model.model_construct(**fields)
