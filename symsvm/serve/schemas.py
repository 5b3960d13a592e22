"""Schemas of requests and responses for the model that is served, and the OpenAPI document made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, FiniteFloat, StrictStr, create_model

from symsvm.serve.http_requests import ProblemBody
from symsvm.serve.middleware import OPEN_ROUTES

if TYPE_CHECKING:
    from fastapi import FastAPI

    from symsvm.serve.settings import Settings

__all__ = ["Health", "Post", "Ready", "Schemas", "error_responses", "openapi_bodies", "openapi_document"]

Label = StrictStr | bool | int | float
# Unknown keys pass here and are refused by `validate_json`: pydantic would write an error for each of a million.
_CONFIG = ConfigDict(extra="allow", strict=True, json_schema_extra={"additionalProperties": False})


def _integral(value: object) -> object:
    """3 for 3.0: JSON does not distinguish them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _integer(least: int, most: int) -> Any:
    """The type of an integer in a range."""
    return Annotated[int, Field(ge=least, le=most), BeforeValidator(_integral)]


_TOP = (_integer(1, 10_000) | None, Field(default=None, description="how many classes to list, the best first"))
_TERMS = (_integer(0, 1000), Field(default=10, description="how many terms of a decision to list, the largest first"))


class Share(BaseModel):
    """A class with its probability, null for a model that is not calibrated."""

    name: Label
    proba: float | None


class Post(BaseModel):
    """The response to a post: its newsgroup, and all newsgroups, the most probable first."""

    predicted_newsgroup: Share
    labels_with_probas: list[Share]


class Ranked(BaseModel):
    """A class with its probability, or with its decision value for a model that is not calibrated."""

    name: Label
    proba: float | None
    decision: float | None


class Classified(BaseModel):
    """The prediction of a classifier: the label, and the classes by decreasing probability or decision value."""

    label: Label
    proba: float | None
    classes: list[Ranked]


class Valued(BaseModel):
    """The prediction of a regressor."""

    value: float


class Sided(BaseModel):
    """The prediction of a one-class SVM: 1 for an inlier, -1 for an outlier."""

    label: int
    decision: float


class Term(BaseModel):
    """contribution = weight * value of a word or feature, named, or of a support vector, named by its row from 0."""

    name: Label
    label: Label | None = Field(description="the class of a support vector")
    weight: float
    value: float
    contribution: float


class Decision(BaseModel):
    """decision = intercept + contributions of `terms` + rest; rest is the sum of the terms that are not listed."""

    label: Label | None = Field(description="the class that a positive decision value stands for")
    against: Label | None = Field(description="the other class; null for one class against the rest")
    decision: float
    intercept: float
    by: str = Field(description="what the terms are: features or support vectors")
    terms: list[Term]
    count: int = Field(description="the number of all terms")
    rest: float


class Health(BaseModel):
    """The process is running."""

    status: str


class Ready(BaseModel):
    """Whether predictions are served; `stale` says that the model file has changed and was refused."""

    ready: bool
    model: str | None
    stale: bool
    message: str | None


_PREDICTIONS = {"class": Classified, "value": Valued, "side": Sided}


@dataclass(frozen=True)
class Schemas:
    """The schemas of a service.

    Attributes
    ----------
    post : type[BaseModel]
        Body of `POST /`.
    batch, line : type[BaseModel]
        Body of `POST /v1/predict` as JSON, and one line of it as NDJSON.
    one : type[BaseModel]
        Body of `POST /v1/explain`.
    prediction : type[BaseModel]
        The prediction for one text or row.
    predictions, explanation : type[BaseModel]
        Responses of `POST /v1/predict` and `POST /v1/explain`.
    plural, single : str
        The key of the texts or rows in a request, and of one of them.
    max_rows : int
        Largest number of texts or rows in a request.
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
    def of(cls, kind: str, answer: str, n_features: int | None, max_rows: int) -> Schemas:
        """The schemas for a model of texts or of rows of n_features numbers; `answer` is that of `ServedModel`."""
        if kind == "text":
            entry, plural, single = StrictStr, "texts", "text"
        else:
            number = Annotated[FiniteFloat, Field(strict=True)]
            entry = Annotated[list[number], Field(min_length=n_features, max_length=n_features), FailFast()]
            plural, single = "rows", "row"
        entries = Annotated[list[entry], Field(min_length=1, max_length=max_rows), FailFast()]
        top = {"top": _TOP} if answer == "class" else {}
        prediction = _PREDICTIONS[answer]
        predictions = list[prediction]  # pyright: ignore[reportInvalidTypeForm]  # a type that is made at run time
        return cls(
            post=_request("PostText", post_text=(StrictStr, ...)),
            batch=_request("Batch", **{plural: (entries, ...)}, **top),
            line=_request("Line", **{single: (entry, ...)}, **top),
            one=_request("One", **{single: (entry, ...)}, terms=_TERMS),
            prediction=prediction,
            predictions=create_model("Predictions", model=(str, ...), predictions=(predictions, ...)),
            explanation=create_model(
                "Explanation", model=(str, ...), prediction=(prediction, ...), decisions=(list[Decision], ...)
            ),
            plural=plural,
            single=single,
            max_rows=max_rows,
        )


def _request(name: str, **fields: Any) -> type[BaseModel]:
    """The schema of a request's body."""
    return create_model(name, __config__=_CONFIG, **fields)


# ---- the OpenAPI document

_COMPONENTS = "#/components/schemas/"
_MEANING = {
    400: "The body is not valid JSON.",
    401: "The token is missing or wrong.",
    408: "The body did not arrive in time.",
    413: "The body is too large, or has too many entries.",
    415: "The media type is not supported.",
    421: "The Host header names another service.",
    422: "The body is valid JSON, but does not match the schema.",
    431: "The headers are too large.",
    503: "The service is busy: try again.",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, for its `responses`."""
    return {status: {"model": ProblemBody, "description": _MEANING[status]} for status in statuses}


def openapi_bodies(
    requests: dict[str, type[BaseModel]], responses: dict[str, type[BaseModel]] | None = None
) -> dict[str, Any]:
    """The schemas of a route's request bodies, and of further responses, by media type; for its `openapi_extra`."""
    content = {kind: {"schema": schema.model_json_schema()} for kind, schema in requests.items()}
    extra: dict[str, Any] = {"requestBody": {"required": True, "content": content}}
    if responses:  # parts of the route's response model, which are among the components
        content = {kind: {"schema": {"$ref": f"{_COMPONENTS}{part.__name__}"}} for kind, part in responses.items()}
        extra["responses"] = {"200": {"content": content}}
    return extra


def openapi_document(app: FastAPI, settings: Settings) -> Callable[[], dict[str, Any]]:
    """The function that FastAPI calls for the document of an application; the document is made once."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            _add_response(made, 431)
            if settings.hosts:
                _add_response(made, 421)
            if settings.token is not None:
                _add_security(made)
            app.openapi_schema = made
        return app.openapi_schema

    return document


def _operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(method.upper(), path, o) for path, methods in document["paths"].items() for method, o in methods.items()]


def _add_response(document: dict[str, Any], status: int) -> None:
    """Add an error response to every route."""
    for *_, operation in _operations(document):
        operation["responses"][str(status)] = _error_schema(status)


def _add_security(document: dict[str, Any]) -> None:
    """Mark the routes that require the token."""
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for method, path, operation in _operations(document):
        if (method, path) not in OPEN_ROUTES:
            operation["security"] = [{"token": []}]
            operation["responses"]["401"] = _error_schema(401)


def _error_schema(status: int) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": f"{_COMPONENTS}{ProblemBody.__name__}"}}}
    return {"description": _MEANING[status], "content": error}
