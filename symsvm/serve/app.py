"""The ASGI application: JSON routes, pages, error handlers, and the lifespan of model and batcher."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import re
from collections.abc import AsyncIterator, Callable
from importlib import resources
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.requests import Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from threadpoolctl import threadpool_limits

from symsvm._lib.heap import trim_memory
from symsvm.serve.batcher import Batcher
from symsvm.serve.http_requests import (
    JSON,
    NDJSON,
    BodyReader,
    RequestError,
    error_response,
    media_type,
    validate_json,
)
from symsvm.serve.metrics import CONTENT_TYPE, Metrics
from symsvm.serve.middleware import ASSETS, GuardMiddleware
from symsvm.serve.model_slot import ModelSlot
from symsvm.serve.schemas import Health, Post, Ready, Schemas, error_responses, openapi_bodies, openapi_document
from symsvm.serve.settings import Settings

if TYPE_CHECKING:
    from symsvm._lib.types import Path
    from symsvm.serve.served_model import Predictions

__all__ = ["create_app"]

# Bodies of more bytes are parsed, and responses of more rows are written, in a thread: other requests go on meanwhile.
_LARGE_BODY, _MANY_ROWS = 1 << 16, 64
# After bodies of more bytes, what the parser has freed is returned to the system.
_TRIMMED_BODY = 1 << 20
# A line that is not blank, from its first character on.
_LINE = re.compile(rb"\S[^\n]*")
_PAGES = {"index.html": "/", "docs.html": "/docs"}
_CONTENT_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def create_app(model_path: Path, settings: Settings | None = None) -> FastAPI:
    """Create the ASGI application that serves a model file.

    A file that cannot be read or served raises an error at once.

    Parameters
    ----------
    model_path : str or path
        A file that `symsvm.load` reads.
    settings : Settings or None
        Limits and access rules. None means the defaults.

    Returns
    -------
    FastAPI
        The application, for an ASGI server.
    """
    settings, metrics = settings or Settings(), Metrics()
    slot = ModelSlot(model_path, settings, metrics)
    served = slot.current.served
    schemas = Schemas.of(served.kind, served.answer, served.n_features, settings.max_rows)
    batcher = Batcher(slot, settings, metrics)
    app = FastAPI(
        title="symsvm",
        version="1",
        description="Predictions of a support vector machine.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lambda app: _lifespan(slot, batcher, settings),
    )
    app.add_middleware(GuardMiddleware, settings=settings, metrics=metrics)
    app.add_exception_handler(RequestError, _handle_request_error)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    _add_predictions(app, slot, batcher, BodyReader(settings), schemas)
    _add_state(app, slot, batcher, metrics)
    _add_pages(app)
    app.openapi = openapi_document(app, settings)
    app.state.slot, app.state.batcher, app.state.metrics = slot, batcher, metrics
    return app


@contextlib.asynccontextmanager
async def _lifespan(slot: ModelSlot, batcher: Batcher, settings: Settings) -> AsyncIterator[None]:
    """Run the batcher and watch the model file; BLAS uses one core, for one thread predicts."""
    with threadpool_limits(1, user_api="blas"):
        executor = batcher.start()
        watch = asyncio.create_task(slot.watch(executor)) if settings.reload else None
        try:
            yield
        finally:
            if watch is not None:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
            await batcher.stop()


# ---- error handlers


async def _handle_request_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return error_response(error)


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    """The response to an unknown route, or to a method that a route does not have."""
    assert isinstance(error, HTTPException)
    path = request.scope["path"]
    if error.status_code == 405:
        routes = [route for route in request.app.routes if route.path == path]
        methods = {method for route in routes for method in route.methods or ()}
        allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))  # the middleware adds HEAD
        message = f"the route accepts {allowed}."
        return error_response(RequestError(405, "method", message, field="method", headers={"allow": allowed}))
    if error.status_code == 404:
        message = "there is no such route: /docs lists the routes."
        return error_response(RequestError(404, "unknown_route", message, field="path"))
    return error_response(RequestError(error.status_code, "invalid", "the request cannot be answered."))


# ---- routes


def _add_predictions(app: FastAPI, slot: ModelSlot, batcher: Batcher, reader: BodyReader, schemas: Schemas) -> None:
    """Add the routes that predict and explain."""
    # A body takes up to a hundred times its size while it is parsed, and the parser holds the GIL: one at a time.
    parsing = asyncio.Lock()

    async def in_turn(data: bytearray, parse: Callable[..., Any], *arguments: Any) -> Any:
        """The parsed body; a large one is parsed in a thread."""
        if len(data) <= _LARGE_BODY:
            return parse(*arguments, data)
        async with parsing:
            try:
                return await asyncio.to_thread(parse, *arguments, data)
            finally:
                if len(data) > _TRIMMED_BODY:
                    await asyncio.to_thread(trim_memory)

    @contextlib.asynccontextmanager
    async def validated(request: Request, schema: type[Any]) -> AsyncIterator[Any]:
        """The body of a request as an instance of a schema."""
        media_type(request, (JSON,))
        async with reader.body(request) as data:
            yield await in_turn(data, validate_json, schema)

    @app.post(
        "/",
        summary="Predict the newsgroup of a post",
        response_model=Post,
        responses=error_responses(400, 408, 413, 415, 422, 503),
        openapi_extra=openapi_bodies({JSON: schemas.post}),
        include_in_schema=slot.current.served.kind == "text",
    )
    async def post(request: Request):
        if slot.current.served.kind != "text":
            message = "post_text: this model takes rows of numbers; send them to /v1/predict."
            raise RequestError(422, "wrong_kind", message, field="post_text")
        async with validated(request, schemas.post) as body:
            _, (predictions,) = await batcher.predict([body.post_text])
        return _json_response(predictions.to_post_dict(0))

    @app.post(
        "/v1/predict",
        summary=f"Predict {schemas.plural}",
        response_model=schemas.predictions,
        responses=error_responses(400, 408, 413, 415, 422, 503),
        openapi_extra=openapi_bodies({JSON: schemas.batch, NDJSON: schemas.line}, {NDJSON: schemas.prediction}),
    )
    async def predict(request: Request):
        kind = media_type(request, (JSON, NDJSON))
        parse, write = (_parse_lines, _write_lines) if kind == NDJSON else (_parse_batch, _write_batch)
        async with reader.body(request) as data:
            inputs, tops, field = await in_turn(data, parse, schemas)
            loaded, parts = await batcher.predict(inputs, field)
        arguments = loaded.digest, parts, tops
        in_thread = len(inputs) > _MANY_ROWS
        return Response(await asyncio.to_thread(write, *arguments) if in_thread else write(*arguments), media_type=kind)

    @app.post(
        "/v1/explain",
        summary=f"Explain the decision for a {schemas.single}",
        response_model=schemas.explanation,
        responses=error_responses(400, 408, 413, 415, 422, 503),
        openapi_extra=openapi_bodies({JSON: schemas.one}),
    )
    async def explain(request: Request):
        async with validated(request, schemas.one) as body:
            loaded, prediction, decisions = await batcher.explain(getattr(body, schemas.single), body.terms)
        return _json_response({"model": loaded.digest, "prediction": prediction, "decisions": decisions})


def _add_state(app: FastAPI, slot: ModelSlot, batcher: Batcher, metrics: Metrics) -> None:
    """Add the routes that describe the model and the service."""

    @app.get("/v1/model", summary="Describe the model: kernel, parameters, labels, certificate", response_model=dict)
    async def model():
        return _json_response(slot.current.description)

    @app.get("/healthz", summary="Check that the process is running", response_model=Health)
    async def health():
        return _json_response({"status": "ok"})

    @app.get(
        "/readyz", summary="Check that predictions are served", response_model=Ready, responses={503: {"model": Ready}}
    )
    async def ready():
        state = {"ready": batcher.running, "model": slot.current.digest, "stale": slot.stale, "message": slot.message}
        return JSONResponse(state, 200 if batcher.running else 503)

    @app.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
    async def measured():
        return Response(metrics.exposition(), media_type=CONTENT_TYPE)


def _json_response(value: Any) -> Response:
    return Response(json.dumps(value, allow_nan=False), media_type=JSON)


# The texts or rows of a body, the number of classes to list for each, and how errors name one of them.
_Inputs = tuple[list[Any], list[int | None], Callable[[int], str]]


def _parse_batch(schemas: Schemas, data: bytearray) -> _Inputs:
    """Parse a JSON body of `/v1/predict`."""
    batch = validate_json(schemas.batch, data)
    inputs = getattr(batch, schemas.plural)
    return inputs, [getattr(batch, "top", None)] * len(inputs), f"{schemas.plural}[{{}}]".format


def _parse_lines(schemas: Schemas, data: bytearray) -> _Inputs:
    """Parse a body of `/v1/predict` with a JSON object on each line."""
    # Not all lines at once: four million of them, blank or not, would take a hundred times the size of the body.
    spans = [match.span() for match in itertools.islice(_LINE.finditer(data), schemas.max_rows + 1)]
    if not spans or len(spans) > schemas.max_rows:
        status, code, found = (413, "too_many", "more") if spans else (422, "too_few", "none")
        message = f"the body must have 1 to {schemas.max_rows} lines, got {found}."
        raise RequestError(status, code, message, field="body")
    inputs, tops, numbers = [], [], []
    number, counted = 1, 0
    for start, end in spans:
        number, counted = number + data.count(b"\n", counted, start), start
        entry = validate_json(schemas.line, data[start:end], line=number)
        inputs.append(getattr(entry, schemas.single))
        tops.append(getattr(entry, "top", None))
        numbers.append(number)
    return inputs, tops, lambda i: f"line {numbers[i]}: {schemas.single}"


def _write_predictions(parts: list[Predictions], tops: list[int | None]) -> list[str]:
    """The JSON of each prediction."""
    rows = ((part, i) for part in parts for i in range(len(part)))
    return [json.dumps(part.to_dict(i, top), allow_nan=False) for (part, i), top in zip(rows, tops, strict=True)]


def _write_batch(digest: str, parts: list[Predictions], tops: list[int | None]) -> str:
    return f'{{"model": "{digest}", "predictions": [{", ".join(_write_predictions(parts, tops))}]}}'


def _write_lines(digest: str, parts: list[Predictions], tops: list[int | None]) -> str:
    return "".join(f"{line}\n" for line in _write_predictions(parts, tops))


# ---- pages


def _add_pages(app: FastAPI) -> None:
    """Add the pages and their assets, which are files of the package."""
    folder = resources.files("symsvm.serve") / "page"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        route = _PAGES.get(file.name, f"{ASSETS}{file.name}")
        app.add_api_route(route, _file_handler(file.read_bytes(), file.name), methods=["GET"], include_in_schema=False)


def _file_handler(content: bytes, name: str) -> Callable[[Request], Any]:
    """The handler that answers with a file, or with 304 where the browser has the same one."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    content_type = f"{_CONTENT_TYPES[name[name.rindex('.') :]]}; charset=utf-8"

    async def send_file(request: Request):
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=content_type)

    return send_file
