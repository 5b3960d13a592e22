"""Pages: one to try the model, and one that shows the interface; files of the package, nothing from elsewhere."""

import hashlib
from importlib import resources

from fastapi.requests import Request
from fastapi.responses import Response

from symsvm.serve.guard import ASSETS

__all__ = ["add_pages"]

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def add_pages(app):
    """Add the pages and their files to an application."""
    folder = resources.files("symsvm.serve") / "page"
    routes = {"index.html": "/", "docs.html": "/docs"}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        route = routes.get(file.name, f"{ASSETS}{file.name}")
        app.add_api_route(route, _teller(file.read_bytes(), file.name), methods=["GET"], include_in_schema=False)


def _teller(content, name):
    """The handler that answers with a file, or with nothing where the browser has it."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    media_type = f"{_TYPES[name[name.rindex('.') :]]}; charset=utf-8"

    async def tell(request: Request):
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=media_type)

    return tell
