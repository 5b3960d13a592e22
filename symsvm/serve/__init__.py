"""HTTP service for a model file, with a web page to try the model; needs `pip install 'symsvm[serve]'`.

`run("news.symsvm", port=8000)` serves until SIGTERM or Ctrl-C. `create_app("news.symsvm", Settings())` returns an ASGI
application for a server of your own. A request takes this path::

    GuardMiddleware -> route -> BodyReader, validate_json -> Batcher -> ModelSlot -> ServedModel -> response

The package imports models, estimators and their inspection (`io`, `inspection`); only the command line imports it.
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
