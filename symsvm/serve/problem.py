"""Problem: what is wrong with a request, as a status and a JSON error that names the field."""

import json

from fastapi.responses import Response
from pydantic import BaseModel, Field, ValidationError

__all__ = ["Problem", "ProblemBody", "answer", "checked"]


class Error(BaseModel):
    """What is wrong."""

    code: str = Field(description="a word for programs", examples=["missing"])
    field: str | None = Field(description="the part of the request that is wrong", examples=["rows[3][1]"])
    message: str = Field(description="a sentence for people", examples=["rows[3][1] must be a finite number."])


class ProblemBody(BaseModel):
    """The body of every answer that is no success."""

    error: Error


class Problem(Exception):
    """A request that cannot be answered."""

    def __init__(self, status, code, message, *, field=None, headers=None):
        super().__init__(message)
        self.status, self.code, self.message, self.field, self.headers = status, code, message, field, headers or {}


def answer(problem):
    """The response that says it.

    >>> answer(Problem(422, "missing", "rows is missing.", field="rows")).body
    b'{"error": {"code": "missing", "field": "rows", "message": "rows is missing."}}'
    """
    error = {"code": problem.code, "field": problem.field, "message": problem.message}
    body = json.dumps({"error": error})
    return Response(body, problem.status, problem.headers, media_type="application/json")


def checked(schema, data, *, line=None):
    """JSON as an instance of a schema, or the problem with it; `line` is its number where it is one of many."""
    prefix = "" if line is None else f"line {line}: "
    try:
        found = schema.model_validate_json(data)
    except ValidationError as error:
        raise _problem(error.errors(include_url=False, include_input=False)[0], prefix) from None
    if found.model_extra:
        raise _problem({"type": "extra", "loc": (next(iter(found.model_extra)),)}, prefix)
    return found


def _problem(first, prefix):
    """The problem of the first thing that pydantic finds wrong."""
    kind, where, context = first["type"], first["loc"], first.get("ctx", {})
    if kind == "json_invalid":
        place = prefix.removesuffix(": ")
        why = " ".join(str(context.get("error", "")).split())[:200]
        return Problem(400, "malformed", f"{place or 'the body'} is no JSON: {why}.", field=place or "body")
    name = prefix + (_name(where) or "body")
    if kind in ("too_long", "too_short") and where in (("rows",), ("texts",)):
        status, code = (413, "too_many") if kind == "too_long" else (422, "too_few")
        most, found = context.get("max_length"), context.get("actual_length")
        wanted = f"at most {most} entries, got {found}: send them in parts" if most else "at least one entry"
        return Problem(status, code, f"{name} must have {wanted}.", field=name)
    code, sentence = _SENTENCES.get(kind, ("invalid", "{name} is not what the schema asks for."))
    wanted = context.get("min_length", context.get("max_length"))
    sentence = sentence.format(name=name, wanted=wanted, found=context.get("actual_length"), **_bounds(context))
    return Problem(422, code, sentence, field=name)


def _name(where):
    """rows[3][1] for ("rows", 3, 1)."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)[:200].removeprefix(".")


def _bounds(context):
    return {"least": context.get("ge"), "most": context.get("le")}


_SENTENCES = {
    "missing": ("missing", "{name} is missing."),
    "extra": ("unknown", "{name} is not known here: leave it out."),
    "finite_number": ("not_finite", "{name} must be a finite number."),
    "float_type": ("wrong_type", "{name} must be a number."),
    "int_type": ("wrong_type", "{name} must be a whole number."),
    "int_from_float": ("wrong_type", "{name} must be a whole number."),
    "string_type": ("wrong_type", "{name} must be a string."),
    "list_type": ("wrong_type", "{name} must be an array."),
    "model_type": ("wrong_type", "{name} must be an object."),
    "model_attributes_type": ("wrong_type", "{name} must be an object."),
    "too_short": ("wrong_length", "{name} must have {wanted} numbers, got {found}."),
    "too_long": ("wrong_length", "{name} must have {wanted} numbers, got {found}."),
    "greater_than_equal": ("out_of_range", "{name} must be at least {least}."),
    "less_than_equal": ("out_of_range", "{name} must be at most {most}."),
}
