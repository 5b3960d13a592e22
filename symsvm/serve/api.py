"""The interface: routes that take and give JSON."""

import asyncio
import contextlib
import json

from fastapi.requests import Request
from fastapi.responses import JSONResponse, Response

from symsvm.serve.body import JSON, LINES, media_type
from symsvm.serve.metrics import CONTENT_TYPE
from symsvm.serve.openapi import body, problems
from symsvm.serve.problem import Problem, checked
from symsvm.serve.schemas import Health, Post, Ready

__all__ = ["add_api"]

# Bytes of a body that is parsed, and rows whose answers are written down, in a thread, so that others have their turn.
_LARGE, _MANY = 1 << 16, 64


def add_api(app, slot, batcher, reader, schemas, metrics):
    """Add the routes to an application."""

    @contextlib.asynccontextmanager
    async def parsed(request, schema):
        """The body of a request as an instance of a schema."""
        media_type(request, (JSON,))
        async with reader.body(request) as data:
            yield checked(schema, data)

    @app.post(
        "/",
        summary="The newsgroup of a post",
        response_model=Post,
        responses=problems(400, 408, 413, 415, 422, 503),
        openapi_extra=body({JSON: schemas.post}),
        include_in_schema=slot.current.served.kind == "text",
    )
    async def post(request: Request):
        if slot.current.served.kind != "text":
            message = "post_text: this model takes rows of numbers; send them to /v1/predict."
            raise Problem(422, "wrong_kind", message, field="post_text")
        async with parsed(request, schemas.post) as found:
            _, (answers,) = await batcher.predict([found.post_text])
        return _json(answers.post(0))

    @app.post(
        "/v1/predict",
        summary=f"Predictions for {schemas.plural}",
        response_model=schemas.predictions,
        responses=problems(400, 408, 413, 415, 422, 503),
        openapi_extra=body({JSON: schemas.batch, LINES: schemas.line}, {LINES: schemas.prediction}),
    )
    async def predict(request: Request):
        kind = media_type(request, (JSON, LINES))
        parse = _lines if kind == LINES else _batch
        async with reader.body(request) as data:
            many = len(data) > _LARGE
            inputs, tops, field = await asyncio.to_thread(parse, schemas, data) if many else parse(schemas, data)
            loaded, parts = await batcher.predict(inputs, field)
        write = _written_lines if kind == LINES else _written
        arguments = loaded.digest, parts, tops
        written = await asyncio.to_thread(write, *arguments) if len(inputs) > _MANY else write(*arguments)
        return Response(written, media_type=kind)

    @app.post(
        "/v1/explain",
        summary=f"What the decision for a {schemas.single} is made of",
        response_model=schemas.explanation,
        responses=problems(400, 408, 413, 415, 422, 503),
        openapi_extra=body({JSON: schemas.one}),
    )
    async def explain(request: Request):
        async with parsed(request, schemas.one) as found:
            loaded, told, decisions = await batcher.explain(getattr(found, schemas.single), found.terms)
        return _json({"model": loaded.digest, "prediction": told, "decisions": decisions})

    @app.get("/v1/model", summary="The model: kernel, parameters, labels, certificate")
    async def model() -> dict:
        return _json(slot.current.description)

    @app.get("/healthz", summary="The process answers", response_model=Health)
    async def health():
        return _json({"status": "ok"})

    @app.get("/readyz", summary="A model is there", response_model=Ready, responses={503: {"model": Ready}})
    async def ready():
        told = {"ready": batcher.running, "model": slot.current.digest, "stale": slot.stale, "message": slot.message}
        return JSONResponse(told, 200 if batcher.running else 503)

    @app.get("/metrics", summary="Counters for Prometheus", response_class=Response)
    async def measured():
        return Response(metrics.text(), media_type=CONTENT_TYPE)


def _json(value):
    return Response(json.dumps(value, allow_nan=False), media_type=JSON)


# ---- bodies of predictions


def _batch(schemas, data):
    """The texts or rows of a JSON body, how many classes each wants to be told, and what errors call one."""
    found = checked(schemas.batch, data)
    inputs = getattr(found, schemas.plural)
    return inputs, [getattr(found, "top", None)] * len(inputs), f"{schemas.plural}[{{}}]".format


def _lines(schemas, data):
    """The same of a body with an object a line."""
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    most = schemas.max_rows
    if not lines or len(lines) > most:
        status, code = (413, "too_many") if lines else (422, "too_few")
        raise Problem(status, code, f"the body must have 1 to {most} lines, got {len(lines)}.", field="body")
    inputs, tops = [], []
    for number, line in lines:
        found = checked(schemas.line, line, line=number)
        inputs.append(getattr(found, schemas.single))
        tops.append(getattr(found, "top", None))
    return inputs, tops, lambda i: f"line {lines[i][0]}: {schemas.single}"


def _told(parts, tops):
    """The JSON of each prediction."""
    rows = ((part, i) for part in parts for i in range(len(part)))
    return [json.dumps(part.telling(i, top), allow_nan=False) for (part, i), top in zip(rows, tops, strict=True)]


def _written(digest, parts, tops):
    return f'{{"model": "{digest}", "predictions": [{", ".join(_told(parts, tops))}]}}'


def _written_lines(digest, parts, tops):
    return "".join(f"{line}\n" for line in _told(parts, tops))
