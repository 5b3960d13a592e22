"""OpenAPI: the description of the interface, from the schemas that it is checked with."""

from fastapi.openapi.utils import get_openapi

from symsvm.serve.guard import OPEN
from symsvm.serve.problem import ProblemBody

__all__ = ["body", "openapi", "problems"]

_PARTS = "#/components/schemas/"
_MEANING = {
    400: "The body is no JSON.",
    401: "The token is missing or wrong.",
    408: "The body came too slowly.",
    413: "The body is too large, or has too many entries.",
    415: "The media type is not known.",
    421: "The host is a name that the service does not go by.",
    422: "The body is JSON, but not what the schema asks for.",
    431: "The headers are too large.",
    503: "Too much waits: try again.",
}


def problems(*statuses):
    """The answers that are no success, for a route's `responses`."""
    return {status: {"model": ProblemBody, "description": _MEANING[status]} for status in statuses}


def body(schemas, answers=None):
    """The bodies of a route, for its `openapi_extra`: schemas of requests, and of further answers, by media type."""
    content = {kind: {"schema": schema.model_json_schema()} for kind, schema in schemas.items()}
    extra = {"requestBody": {"required": True, "content": content}}
    if answers:  # parts of the route's own answer, which have a place among the components
        content = {kind: {"schema": {"$ref": f"{_PARTS}{part.__name__}"}} for kind, part in answers.items()}
        extra["responses"] = {"200": {"content": content}}
    return extra


def openapi(app, settings):
    """The function that FastAPI asks for the document of an application; it is made once."""

    def document():
        if app.openapi_schema is None:
            found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            _refuse(found, 431)
            if settings.hosts:
                _refuse(found, 421)
            if settings.token is not None:
                _protect(found)
            app.openapi_schema = found
        return app.openapi_schema

    return document


def _operations(document):
    return [(method.upper(), path, o) for path, methods in document["paths"].items() for method, o in methods.items()]


def _refuse(document, status):
    """Say that every route may answer so, whatever it is for."""
    for *_, operation in _operations(document):
        operation["responses"][str(status)] = _refusal(status)


def _protect(document):
    """Say which routes ask for the token."""
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for method, path, operation in _operations(document):
        if (method, path) not in OPEN:
            operation["security"] = [{"token": []}]
            operation["responses"]["401"] = _refusal(401)


def _refusal(status):
    error = {"application/json": {"schema": {"$ref": f"{_PARTS}{ProblemBody.__name__}"}}}
    return {"description": _MEANING[status], "content": error}
