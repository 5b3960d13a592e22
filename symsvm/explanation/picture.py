"""Picture: the lines of a formula as boxes, drawn in layers from the data down to W, in plain SVG."""

import textwrap
from html import escape
from itertools import pairwise
from statistics import mean

__all__ = ["svg"]

_CHAR, _ROW, _PAD, _GAP, _RISE = 7.25, 17, 11, 26, 40  # pixels: a character, a row of text, inside and between boxes
_COLOURS = {  # fill and edge
    "input": ("#ffffff", "#8a94a6"),
    "variable": ("#fff6d6", "#b98b00"),
    "once": ("#e2f3e5", "#2f7d3b"),
    "step": ("#fde9d7", "#bb5f16"),
    "tile": ("#efe5f8", "#7445a3"),
    "loop": ("#fde3e3", "#b3363a"),
    "plain": ("#f1f3f6", "#5a6372"),
}
_LEGEND = {
    "input": "input",
    "variable": "variable",
    "loop": "loop",
    "once": "once a run",
    "tile": "each step, in tiles",
    "step": "each step",
}


def svg(found, *, standalone=True):
    """Draw the graph of a `Report` as written and as it runs, side by side; standalone for a file of its own."""
    before = _panel("As written", found.drawn.lines, {**found.when, **_loops(found.drawn.lines, "plain")})
    after = _panel("After the passes", found.running.lines, {**found.when, **_loops(found.running.lines)})
    passes = [f"{name} × {n}" for name, n in found.fired.items() if n] or ["no pass fired"]
    middle = max(map(len, passes)) * _CHAR + 2 * _PAD
    (left, width, height), (right, other, tall) = before, after
    whole, full = width + middle + other + 2 * _GAP, max(height, tall) + 2 * _GAP
    y = full / 2 - len(passes) * _ROW / 2
    x = _GAP + width + middle / 2
    texts = [_text(x, y + i * _ROW, name, "middle", "#5a6372") for i, name in enumerate(passes)]
    y += (len(passes) - 0.3) * _ROW
    arrow = f'<path d="M{x - 34:.0f} {y:.0f}h62m-9 -6l9 6l-9 6" fill="none" stroke="#5a6372" stroke-width="1.6"/>'
    space = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    return "\n".join(
        [
            f'<svg{space} viewBox="0 0 {whole:.0f} {full:.0f}" width="{whole:.0f}" height="{full:.0f}" '
            'font-family="Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="12">',
            f"<title>{escape(found.problem)}</title>",
            f'<rect width="{whole:.0f}" height="{full:.0f}" fill="#ffffff"/>',
            f'<g transform="translate({_GAP} {_GAP})">{left}</g>',
            *texts,
            arrow,
            f'<g transform="translate({_GAP + width + middle:.0f} {_GAP})">{right}</g>',
            "</svg>\n",
        ]
    )


def _loops(lines, other=None):
    """The lines that are loops, and another kind for the rest if one is given."""
    kinds = {line.name: "loop" if _is_loop(line.term) else other for line in lines}
    return {name: kind for name, kind in kinds.items() if kind}


def _is_loop(term):
    return term.kind == "loop" or (term.kind == "call" and term.label[0] == "loop")


def _panel(title, lines, when):
    """One graph with its title and legend: (SVG, width, height)."""
    names = {line.name for line in lines}
    texts = {line.name: _wrap(str(line)) for line in lines}
    texts |= {name: [name] for line in lines for name in line.uses if name not in names}
    sizes = {
        name: (max(map(len, rows)) * _CHAR + 2 * _PAD, len(rows) * _ROW + 1.2 * _PAD) for name, rows in texts.items()
    }
    edges = [(used, line.name) for line in lines for used in line.uses]
    places, paths, width, height = _layout(sizes, edges)
    kinds = [kind for kind in _LEGEND if kind in {when.get(name, "input") for name in texts}]
    legend = [(kind, _LEGEND[kind]) for kind in kinds]
    width = max(width, sum(len(text) * _CHAR + 34 for _, text in legend))
    top = 2 * _ROW
    parts = [_text(0, 4, title, "start", "#1d2530", ' font-weight="bold"')]
    parts += [f'<path d="{path}" fill="none" stroke="#9aa3b2" stroke-width="1.3"/>' for path in _shifted(paths, top)]
    for name, (x, y) in places.items():
        parts.append(_box(x, y + top, sizes[name], texts[name], when.get(name, "input")))
    x, y = 0, top + height + 1.6 * _ROW
    for kind, text in legend:
        fill, edge = _COLOURS[kind]
        parts.append(
            f'<rect x="{x:.0f}" y="{y - 10:.0f}" width="14" height="12" rx="3" fill="{fill}" stroke="{edge}"/>'
        )
        parts.append(_text(x + 20, y, text, "start", "#5a6372"))
        x += len(text) * _CHAR + 34
    return "\n".join(parts), width, y + _ROW


def _layout(sizes, edges):
    """Place boxes in layers, each as low as those that use it allow: (centre of each, paths, width, height).

    An edge that skips a layer gets a point there, so that it passes between the boxes and not behind them.
    """
    below = {name: [b for a, b in edges if a == name] for name in sizes}
    depths = {}

    def depth(name):
        if name not in depths:
            depths[name] = 1 + max((depth(b) for b in below[name]), default=-1)
        return depths[name]

    deepest = max(map(depth, sizes))
    layer = {name: deepest - depth(name) for name in sizes}
    size, chains = dict(sizes), []
    for n, (a, b) in enumerate(edges):
        points = [(n, k) for k in range(layer[a] + 1, layer[b])]
        layer.update({point: point[1] for point in points})
        size.update(dict.fromkeys(points, (4, 0)))
        chains.append([a, *points, b])
    near = {name: [] for name in layer}
    for a, b in (pair for chain in chains for pair in pairwise(chain)):
        near[a].append(b)
        near[b].append(a)
    rows = [[name for name in layer if layer[name] == k] for k in range(deepest + 1)]
    x = {name: i * 90.0 for row in rows for i, name in enumerate(row)}
    for sweep in range(25):  # down and up again; the last one up, so that a box stands above those that use it
        for k in range(deepest + 1) if sweep % 2 else range(deepest, -1, -1):
            side = [k - 1] if sweep % 2 else [k + 1]
            wish = {v: mean([x[u] for u in near[v] if layer[u] in side] or [x[v]]) for v in rows[k]}
            rows[k].sort(key=wish.get)
            _spread(rows[k], wish, size, x)
    left = min(x[v] - size[v][0] / 2 for v in layer)
    y, top = {}, 0.0
    for row in rows:
        tall = max(size[v][1] for v in row)
        y |= dict.fromkeys(row, top + tall / 2)
        size.update({v: (size[v][0], tall) for v in row if v not in sizes})
        top += tall + _RISE
    places = {v: (x[v] - left, y[v]) for v in layer}
    width = max(x[v] + size[v][0] / 2 for v in layer) - left
    paths = [[(places[v], size[v][1] / 2) for v in chain] for chain in chains]
    return {v: places[v] for v in sizes}, paths, width, top - _RISE


def _spread(row, wish, size, x):
    """Put a row's boxes where they wish to be, in their order and without touching."""
    at, gaps = [], []
    for v in row:
        start = at[-1] + gaps[-1] + size[v][0] / 2 if at else wish[v]
        at.append(max(wish[v], start))
        gaps.append(size[v][0] / 2 + _GAP)
    shift = mean(wish[v] - place for v, place in zip(row, at, strict=True))
    x.update({v: place + shift for v, place in zip(row, at, strict=True)})


def _shifted(paths, top):
    """The paths as smooth curves from the lower edge of one box to the upper edge of another."""
    for path in paths:
        (x, y), half = path[0]
        text = f"M{x:.0f} {y + half + top:.0f}"
        y += half
        for (nx, ny), half in path[1:]:
            end = ny - half
            bend = (y + end) / 2 + top
            text += f" C{x:.0f} {bend:.0f} {nx:.0f} {bend:.0f} {nx:.0f} {end + top:.0f}"
            if (nx, ny) != path[-1][0]:
                text += f" V{ny + half + top:.0f}"
            x, y = nx, ny + half
        yield text


def _box(x, y, size, rows, kind):
    (w, h), (fill, edge) = size, _COLOURS[kind]
    dash = ' stroke-dasharray="5 3"' if kind == "tile" else ""
    box = (
        f'<rect x="{x - w / 2:.0f}" y="{y - h / 2:.0f}" width="{w:.0f}" height="{h:.0f}" rx="6" fill="{fill}" '
        f'stroke="{edge}" stroke-width="1.3"{dash}/>'
    )
    first = y - (len(rows) - 1) * _ROW / 2 + 4
    if len(rows) == 1:
        return box + _text(x, first, rows[0], "middle", "#1d2530")
    texts = [_text(x - w / 2 + _PAD, first + i * _ROW, row, "start", "#1d2530") for i, row in enumerate(rows)]
    return box + "".join(texts)


def _text(x, y, text, anchor, colour, more=""):
    text = escape(text).replace("  ", "\u00a0\u00a0")
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{colour}"{more}>{text}</text>'


def _wrap(text):
    """Rows of at most 46 characters, broken at operators; the term of a loop starts a row."""
    rows = []
    for depth, part in enumerate(text.replace(", ", ",\u00a0").split("\n")):
        indent = "  " * (depth > 0)
        rows += textwrap.wrap(part, 46, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
    return [row.replace("\u00a0", " ") for row in rows]
