"""Schemas: what requests hold and what answers say, for the model that is served."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, FiniteFloat, StrictStr, create_model

__all__ = ["Schemas"]

Label = StrictStr | bool | int | float
# Unknown keys are taken here and refused by `checked`: pydantic would write an error for each of a million.
_CONFIG = ConfigDict(extra="allow", strict=True, json_schema_extra={"additionalProperties": False})


def _whole(value):
    """JSON does not tell 3.0 from 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _between(least, most):
    return Annotated[int, Field(ge=least, le=most), BeforeValidator(_whole)]


_TOP = (_between(1, 10_000) | None, Field(default=None, description="how many classes to tell, the best first"))
_TERMS = (_between(0, 1000), Field(default=10, description="how many terms of a decision to tell, the largest first"))


class Share(BaseModel):
    """A class with its probability, null for a model that is not calibrated."""

    name: Label
    proba: float | None


class Post(BaseModel):
    """The answer to a post: its newsgroup, and all of them, the most probable first."""

    predicted_newsgroup: Share
    labels_with_probas: list[Share]


class Ranked(BaseModel):
    """A class with its probability, or without calibration its decision value."""

    name: Label
    proba: float | None
    decision: float | None


class Classified(BaseModel):
    """The prediction of a classifier: `predict`, and the classes in the order of their probability or decision."""

    label: Label
    proba: float | None
    classes: list[Ranked]


class Valued(BaseModel):
    """The prediction of a regression."""

    value: float


class Sided(BaseModel):
    """The prediction of a one-class machine: 1 for an inlier, -1 for an outlier."""

    label: int
    decision: float


class Term(BaseModel):
    """contribution = weight * value, of a word or feature by its name, or a support vector by its row, from 0."""

    name: Label
    label: Label | None = Field(description="the class of a support vector")
    weight: float
    value: float
    contribution: float


class Decision(BaseModel):
    """decision = intercept + the contributions of all terms + rest, which are those of the terms not told."""

    label: Label | None = Field(description="what a positive decision speaks for")
    against: Label | None = Field(description="the other class of two; null for the rest")
    decision: float
    intercept: float
    by: str = Field(description="what the terms are: features or support vectors")
    terms: list[Term]
    count: int = Field(description="how many terms there are")
    rest: float


class Health(BaseModel):
    """The process answers."""

    status: str


class Ready(BaseModel):
    """A model is there; `stale` says that its file has changed since and could not be used."""

    ready: bool
    model: str | None
    stale: bool
    message: str | None


_ANSWERS = {"class": Classified, "value": Valued, "side": Sided}


@dataclass(frozen=True)
class Schemas:
    """The schemas of a service.

    Attributes
    ----------
    post : the body of `POST /`.
    batch, line : of `POST /v1/predict`, as JSON and as a line of NDJSON.
    one : of `POST /v1/explain`.
    prediction : what is predicted for one text or row; predictions, explanation : the answers.
    plural, single : the key of the texts or rows, and of one of them.
    max_rows : the most texts or rows of a request.
    """

    post: Any
    batch: Any
    line: Any
    one: Any
    prediction: Any
    predictions: Any
    explanation: Any
    plural: str
    single: str
    max_rows: int

    @classmethod
    def of(cls, kind, answer, n_features, max_rows):
        """The schemas of a model of texts, or of rows of n_features numbers, that answers with classes or values."""
        if kind == "text":
            entry, plural, single = StrictStr, "texts", "text"
        else:
            number = Annotated[FiniteFloat, Field(strict=True)]
            entry = Annotated[list[number], Field(min_length=n_features, max_length=n_features), FailFast()]
            plural, single = "rows", "row"
        many = Annotated[list[entry], Field(min_length=1, max_length=max_rows), FailFast()]
        top = {"top": _TOP} if answer == "class" else {}
        prediction = _ANSWERS[answer]
        return cls(
            _made("PostText", post_text=(StrictStr, ...)),
            _made("Batch", **{plural: (many, ...)}, **top),
            _made("Line", **{single: (entry, ...)}, **top),
            _made("One", **{single: (entry, ...)}, terms=_TERMS),
            prediction,
            create_model("Predictions", model=(str, ...), predictions=(list[prediction], ...)),
            create_model(
                "Explanation", model=(str, ...), prediction=(prediction, ...), decisions=(list[Decision], ...)
            ),
            plural,
            single,
            max_rows,
        )


def _made(name, **fields):
    return create_model(name, __config__=_CONFIG, **fields)
