"""The service: a model file over HTTP, with a page to try it; needs `pip install 'symsvm[serve]'`.

run("news.symsvm", port=8000)                   # until SIGTERM or Ctrl-C
app = create_app("news.symsvm", Settings())     # an ASGI application, for a server of your own

    request -> Guard -> route -> body -> Batcher -> ModelSlot -> answer

`Guard` sets the headers, counts and asks for the token; a body is read with limits and checked against its schema;
`Batcher` gathers what arrives while the model is busy; `ModelSlot` holds the model and replaces it when the file does.
"""

try:
    import fastapi  # noqa: F401
    import httptools  # noqa: F401
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise ImportError(f"the service needs {error.name}: pip install 'symsvm[serve]'.", name=error.name) from None

from symsvm.serve.app import create_app
from symsvm.serve.server import run
from symsvm.serve.settings import Settings

__all__ = ["Settings", "create_app", "run"]
