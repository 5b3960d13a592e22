"""Rendering an explanation as text, as an SVG picture of the graph before and after the passes, or as an HTML page."""

from __future__ import annotations

import textwrap
from html import escape
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING

from symsvm.compiler.lifting import PASSES

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from symsvm.explanation.explanation_report import ExplanationReport
    from symsvm.explanation.formula import Line, Term

__all__ = ["render_html", "render_svg", "render_text"]

# ---- text: formulas are indented, lines have at most 110 columns

_COLUMNS = 110
_TITLES = {
    "once": "After the passes, once a run",
    "tile": "After the passes, in each step, a tile at a time",
    "step": "After the passes, in each step",
}


def render_text(report: ExplanationReport) -> str:
    """Return a report as text."""
    equations = [f"  Eq. {n}: {title}" for n, title in report.equations.items()]
    width = max(map(len, PASSES))
    fired = [f"  {name:<{width}}  {n}" for name, n in report.fired.items()]
    unused = ", ".join(name for name in PASSES if name not in report.fired)
    sections = [
        [report.problem, *equations],
        ["As written", *map(_indent_line, report.written.lines)],
        ["Read as", *(_wrap_text(line, "      ", "  ") for line in report.read)] if report.read else [],
        ["Last fit", *(_wrap_text(line, "      ", "  ") for line in report.fit)] if report.fit else [],
        ["Passes, and how many nodes each replaced", *fired, _wrap_text(f"not used: {unused}", "    ", "  ")],
        [_wrap_text(note, "") for note in report.notes],
        *([title, *_lines_of(report, when)] for when, title in _TITLES.items() if when in report.when.values()),
        [
            _wrap_text(f"{name}: {value}", "  ")
            for name, value in (("Step", report.step), ("Memory", report.memory), ("Backend", report.backend))
        ],
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _lines_of(report: ExplanationReport, when: str) -> Iterator[str]:
    """Yield the lines that are computed at this time, and the arrays that are stored of them."""
    for line in report.running.lines:
        if report.when[line.name] == when:
            yield _indent_line(line)
            if line.name in report.stored:
                yield f"    stored: {report.stored[line.name]}"


def _indent_line(line: Line) -> str:
    """Return a line with the bodies of its loops indented below it."""
    first, *rest = str(line).split("\n")
    rows = [_wrap_text(first, "      ", "  ")]
    rows += [_wrap_text(row, " " * (8 + 2 * depth), " " * (4 + 2 * depth)) for depth, row in enumerate(rest)]
    return "\n".join(rows)


def _wrap_text(text: str, indent: str, first: str = "") -> str:
    text = text.replace(", ", ",\u00a0") if " = " in text else text  # break a formula at its operators only
    rows = textwrap.wrap(text, _COLUMNS, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(rows).replace("\u00a0", " ")


# ---- HTML

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1d2530; background: #ffffff; margin: 2em auto; padding: 0 1.5em;
  max-width: 80em; }
h1 { font-size: 1.3em; } h2 { font-size: 1.05em; margin-top: 2em; }
figure { margin: 1em 0; overflow-x: auto; } svg { max-width: 100%; height: auto; }
pre { background: #f6f7f9; border-radius: 6px; padding: 1em; overflow-x: auto; font-size: 0.85em; line-height: 1.45; }
"""


def render_html(report: ExplanationReport) -> str:
    """Return a report as a page without external resources: the picture, the notes, then the full text."""
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{escape(report.problem)}</title><style>{_STYLE}</style></head>
<body>
<h1>{escape(report.problem)}</h1>
<figure>
{render_svg(report, standalone=False)}</figure>
<p>{"<br>".join(map(escape, (*report.notes, report.memory)))}</p>
<h2>In full</h2>
<pre>{escape(render_text(report))}</pre>
</body>
</html>
"""


# ---- SVG: the lines of a formula are boxes in layers, from the data at the top to W at the bottom

# In pixels: the width of a character, the height of a row of text, the padding of a box, the gaps between boxes.
_CHAR, _ROW, _PAD, _GAP, _LAYER_GAP = 7.25, 17, 11, 26, 40
_BOX_COLUMNS = 46
_SWEEPS = 25  # of the layout, down and up; an odd number ends with a sweep up, which puts a box above its users
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


def render_svg(report: ExplanationReport, *, standalone: bool = True) -> str:
    """Return a picture of the graph as written and after the passes; `standalone` adds what a separate file needs."""
    before = _draw_panel("As written", report.drawn.lines, {**report.when, **_box_kinds(report.drawn.lines, "plain")})
    after = _draw_panel("After the passes", report.running.lines, {**report.when, **_box_kinds(report.running.lines)})
    passes = [f"{name} × {n}" for name, n in report.fired.items() if n] or ["no pass fired"]
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
            f"<title>{escape(report.problem)}</title>",
            f'<rect width="{whole:.0f}" height="{full:.0f}" fill="#ffffff"/>',
            f'<g transform="translate({_GAP} {_GAP})">{left}</g>',
            *texts,
            arrow,
            f'<g transform="translate({_GAP + width + middle:.0f} {_GAP})">{right}</g>',
            "</svg>\n",
        ]
    )


def _box_kinds(lines: Iterable[Line], other: str | None = None) -> dict[str, str]:
    """Return "loop" for the lines that are loops, and `other`, if given, for the rest."""
    kinds = {line.name: "loop" if _is_loop(line.term) else other for line in lines}
    return {name: kind for name, kind in kinds.items() if kind}


def _is_loop(term: Term) -> bool:
    return term.kind == "loop" or (term.kind == "call" and term.label[0] == "loop")


def _draw_panel(title: str, lines: Sequence[Line], when: Mapping[str, str]) -> tuple[str, float, float]:
    """Return the SVG of one graph with its title and legend, its width and its height."""
    names = {line.name for line in lines}
    texts = {line.name: _wrap_box(str(line)) for line in lines}
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
    parts += [f'<path d="{path}" fill="none" stroke="#9aa3b2" stroke-width="1.3"/>' for path in _draw_edges(paths, top)]
    for name, (x, y) in places.items():
        parts.append(_draw_box(x, y + top, sizes[name], texts[name], when.get(name, "input")))
    x, y = 0, top + height + 1.6 * _ROW
    for kind, text in legend:
        fill, edge = _COLOURS[kind]
        parts.append(
            f'<rect x="{x:.0f}" y="{y - 10:.0f}" width="14" height="12" rx="3" fill="{fill}" stroke="{edge}"/>'
        )
        parts.append(_text(x + 20, y, text, "start", "#5a6372"))
        x += len(text) * _CHAR + 34
    return "\n".join(parts), width, y + _ROW


def _layout(sizes: Mapping[str, tuple[float, float]], edges: Sequence[tuple[str, str]]):
    """Place boxes in layers, each just above its highest user; return (centres, paths, width, height).

    An edge that skips a layer gets a point in it, so that it passes between the boxes and not behind them.
    """
    below = {name: [b for a, b in edges if a == name] for name in sizes}
    depths: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in depths:
            depths[name] = 1 + max((depth(b) for b in below[name]), default=-1)
        return depths[name]

    deepest = max(map(depth, sizes))
    # Keys are names of boxes, and (edge, layer) for the points of edges that skip a layer.
    layer: dict[Hashable, int] = {name: deepest - depth(name) for name in sizes}
    size: dict[Hashable, tuple[float, float]] = {**sizes}
    chains: list[list[Hashable]] = []
    for n, (a, b) in enumerate(edges):
        points = [(n, k) for k in range(layer[a] + 1, layer[b])]
        layer.update({point: point[1] for point in points})
        size.update(dict.fromkeys(points, (4, 0)))
        chains.append([a, *points, b])
    near: dict[Hashable, list[Hashable]] = {name: [] for name in layer}
    for a, b in (pair for chain in chains for pair in pairwise(chain)):
        near[a].append(b)
        near[b].append(a)
    rows = [[name for name in layer if layer[name] == k] for k in range(deepest + 1)]
    x = {name: i * 90.0 for row in rows for i, name in enumerate(row)}
    for sweep in range(_SWEEPS):
        for k in range(deepest + 1) if sweep % 2 else range(deepest, -1, -1):
            side = [k - 1] if sweep % 2 else [k + 1]
            wanted = {v: mean([x[u] for u in near[v] if layer[u] in side] or [x[v]]) for v in rows[k]}
            rows[k].sort(key=wanted.__getitem__)
            _spread(rows[k], wanted, size, x)
    left = min(x[v] - size[v][0] / 2 for v in layer)
    y, top = {}, 0.0
    for row in rows:
        tall = max(size[v][1] for v in row)
        y |= dict.fromkeys(row, top + tall / 2)
        size.update({v: (size[v][0], tall) for v in row if v not in sizes})
        top += tall + _LAYER_GAP
    places = {v: (x[v] - left, y[v]) for v in layer}
    width = max(x[v] + size[v][0] / 2 for v in layer) - left
    paths = [[(places[v], size[v][1] / 2) for v in chain] for chain in chains]
    return {v: places[v] for v in sizes}, paths, width, top - _LAYER_GAP


def _spread(
    row: Sequence[Hashable],
    wanted: Mapping[Hashable, float],
    size: Mapping[Hashable, tuple[float, float]],
    x: dict[Hashable, float],
) -> None:
    """Set x of a row's boxes near the wanted positions, in order and without overlap."""
    at, gaps = [], []
    for v in row:
        start = at[-1] + gaps[-1] + size[v][0] / 2 if at else wanted[v]
        at.append(max(wanted[v], start))
        gaps.append(size[v][0] / 2 + _GAP)
    shift = mean(wanted[v] - place for v, place in zip(row, at, strict=True))
    x.update({v: place + shift for v, place in zip(row, at, strict=True)})


def _draw_edges(paths: Iterable[Sequence[tuple[tuple[float, float], float]]], top: float) -> Iterator[str]:
    """Yield smooth curves from the lower edge of one box to the upper edge of another, `top` pixels lower."""
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


def _draw_box(x: float, y: float, size: tuple[float, float], rows: Sequence[str], kind: str) -> str:
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


def _text(x: float, y: float, text: str, anchor: str, colour: str, more: str = "") -> str:
    text = escape(text).replace("  ", "\u00a0\u00a0")
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{colour}"{more}>{text}</text>'


def _wrap_box(text: str) -> list[str]:
    """Return the rows of a box, broken at operators; the body of a loop starts a row."""
    rows = []
    for depth, part in enumerate(text.replace(", ", ",\u00a0").split("\n")):
        indent = "  " * (depth > 0)
        rows += textwrap.wrap(
            part, _BOX_COLUMNS, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
        )
    return [row.replace("\u00a0", " ") for row in rows]
