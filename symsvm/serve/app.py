"""The application: routes, guard and model put together."""

import asyncio
import contextlib

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from threadpoolctl import threadpool_limits

from symsvm.serve.api import add_api
from symsvm.serve.batcher import Batcher
from symsvm.serve.body import BodyReader
from symsvm.serve.guard import Guard
from symsvm.serve.metrics import Metrics
from symsvm.serve.openapi import openapi
from symsvm.serve.pages import add_pages
from symsvm.serve.problem import Problem, answer
from symsvm.serve.schemas import Schemas
from symsvm.serve.settings import Settings
from symsvm.serve.slot import ModelSlot

__all__ = ["create_app"]


def create_app(model_path, settings=None):
    """The ASGI application that serves a model file; a file that cannot be read or used raises at once.

    Parameters
    ----------
    model_path : a file that `symsvm.load` reads.
    settings : a `Settings`, None for its defaults.
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
        lifespan=lambda app: _life(slot, batcher, settings),
    )
    app.add_middleware(Guard, settings=settings, metrics=metrics)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(HTTPException, _on_http)
    add_api(app, slot, batcher, BodyReader(settings), schemas, metrics)
    add_pages(app)
    app.openapi = openapi(app, settings)
    app.state.slot, app.state.batcher, app.state.metrics = slot, batcher, metrics
    return app


@contextlib.asynccontextmanager
async def _life(slot, batcher, settings):
    """While the service lives: the thread of the predictions, which BLAS leaves one core, and a look at the file."""
    with threadpool_limits(1, user_api="blas"):
        batcher.start()
        watch = asyncio.create_task(slot.watch(batcher.executor)) if settings.reload else None
        try:
            yield
        finally:
            if watch is not None:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
            await batcher.stop()


async def _on_problem(request, problem):
    return answer(problem)


async def _on_http(request, error):
    """An unknown route, or a method that a route does not have."""
    path = request.scope["path"]
    if error.status_code == 405:
        methods = {m for route in request.app.routes if route.path == path for m in route.methods or ()}
        methods = sorted(methods | ({"HEAD"} if "GET" in methods else set()))  # which the guard answers as GET
        message = f"the route takes {', '.join(methods)}."
        return answer(Problem(405, "method", message, field="method", headers={"allow": ", ".join(methods)}))
    if error.status_code == 404:
        return answer(Problem(404, "unknown_route", "there is no such route: see /docs.", field="path"))
    return answer(Problem(error.status_code, "invalid", "the request cannot be answered."))
