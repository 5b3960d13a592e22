"""Page: a report as one HTML page, pictures included, that loads nothing."""

from html import escape

from symsvm.explanation.picture import svg
from symsvm.explanation.text import text

__all__ = ["page"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1d2530; background: #ffffff; margin: 2em auto; padding: 0 1.5em;
  max-width: 80em; }
h1 { font-size: 1.3em; } h2 { font-size: 1.05em; margin-top: 2em; }
figure { margin: 1em 0; overflow-x: auto; } svg { max-width: 100%; height: auto; }
pre { background: #f6f7f9; border-radius: 6px; padding: 1em; overflow-x: auto; font-size: 0.85em; line-height: 1.45; }
"""


def page(found):
    """Write a `Report` as a page: the problem, the graph before and after, then everything as text."""
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{escape(found.problem)}</title><style>{_STYLE}</style></head>
<body>
<h1>{escape(found.problem)}</h1>
<figure>
{svg(found, standalone=False)}</figure>
<p>{"<br>".join(map(escape, (*found.notes, found.memory)))}</p>
<h2>In full</h2>
<pre>{escape(text(found))}</pre>
</body>
</html>
"""
