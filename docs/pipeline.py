"""Draw docs/pictures/pipeline.svg, the path of a fit through the packages: `python docs/pipeline.py`."""

from html import escape
from pathlib import Path

PICTURE = Path(__file__).with_name("pictures") / "pipeline.svg"

# (title, package, what it holds), from left to right; and the second row, whose boxes serve the one above them.
TOP = (
    ("kernel", "kernels", "K(x, z), one expression"),
    ("objective", "objectives", "W, feasible set, certificate"),
    ("compiler", "compiler", "lift, differentiate, compile"),
    ("solver", "solvers", "working sets, or steps"),
    ("solution", "solvers", "lam, b, certificate, trace"),
)
BOTTOM = (
    ("gradients", "implicit, heads", "of solutions, by anything"),
    ("graphs", "graphs", "structure and types"),
    ("ops", "compiler/ops", "pairs of points in tiles"),
    ("kernel matrix", "evaluation, distributed", "blocks and products"),
    ("estimators", "estimators, linear", "SVC, SVR, LinearSVC ..."),
)
USERS = (
    ("io", "data, models, texts"),
    ("model_selection", "searches over grids"),
    ("inspection", "contributions, plots"),
    ("cli", "symsvm train ..."),
    ("serve", "HTTP"),
)
WIDTH, HEIGHT, GAP, LEFT = 172, 62, 26, 16


def box(x, y, title, package, text, css="main"):
    """A box with a title, the package below symsvm, and what it holds."""
    return (
        f'<g class="{css}"><rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
        f'<text x="{x + 12}" y="{y + 22}" class="title">{escape(title)}</text>'
        f'<text x="{x + 12}" y="{y + 38}" class="package">{escape(package)}</text>'
        f'<text x="{x + 12}" y="{y + 53}">{escape(text)}</text></g>'
    )


def arrow(x1, y1, x2, y2):
    """An arrow between two points."""
    return f'<path d="M{x1} {y1} L{x2} {y2}" class="arrow" marker-end="url(#head)"/>'


def picture():
    """Return the text of the picture."""
    columns = [LEFT + i * (WIDTH + GAP) for i in range(5)]
    width, parts = columns[-1] + WIDTH + LEFT, []
    for i, (title, package, text) in enumerate(TOP):
        parts.append(box(columns[i], 40, title, package, text))
        if i:
            parts.append(arrow(columns[i] - GAP + 2, 71, columns[i] - 3, 71))
    for i, entry in enumerate(BOTTOM):
        parts.append(box(columns[i], 142, *entry, css="help"))
        ends = (104, 139) if i == 4 else (139, 105)
        parts.append(arrow(columns[i] + WIDTH // 2, ends[0], columns[i] + WIDTH // 2, ends[1]))
    for i, (title, text) in enumerate(USERS):
        parts.append(box(columns[i], 244, title, "", text, css="user"))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 322" width="{width}" height="322" '
            'role="img" aria-label="Packages of symsvm: kernel, objective, compiler, solver, solution, and others">',
            "<style>",
            "text { font: 11px system-ui, sans-serif; fill: #444; } .title { font-weight: 600; font-size: 14px; }",
            ".package { font-family: ui-monospace, monospace; fill: #2b5d8a; } .head { fill: #555; font-size: 12px; }",
            ".main rect { fill: #e8f1fa; stroke: #2b5d8a; } .main .title, .help .title, .user .title { fill: #111; }",
            ".help rect { fill: #f4f4f4; stroke: #888; } .user rect { fill: #fdf6e8; stroke: #b58a2e; }",
            ".arrow { stroke: #555; fill: none; stroke-width: 1.5; }",
            "</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#555"/></marker></defs>',
            f'<rect width="{width}" height="322" fill="white"/>',
            f'<text x="{LEFT}" y="26" class="head">One path, from a kernel to a certified solution</text>',
            *parts,
            f'<text x="{LEFT}" y="236" class="head">What users meet</text>',
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")
