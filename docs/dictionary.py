"""Write docs/dictionary.md from symsvm.paper.dictionary: `python docs/dictionary.py`."""

import importlib
import inspect
from pathlib import Path

from symsvm.paper.dictionary import EQUATIONS, OTHERS, SYMBOLS

PAGE = Path(__file__).with_suffix(".md")
ROOT = PAGE.parent.parent


def resolve(name):
    """Return the object behind a dotted name below `symsvm`."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            target = importlib.import_module(".".join(["symsvm", *parts[:split]]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            target = getattr(target, part)
        return target
    raise LookupError(name)


def link(name):
    """Return a link to the file that defines a name."""
    path = Path(inspect.getsourcefile(inspect.unwrap(resolve(name)))).resolve().relative_to(ROOT)
    return f"[`{name}`](../{path})"


def anchor(number):
    """Return the anchor of an equation of another document: eq-001-7."""
    return "eq-" + number.replace(":", "-").replace(".", "-")


def home(number):
    """Return the page that states an equation of another document."""
    for name in ("algorithms.md", "equations.md", "deep.md"):
        if f'<a id="{anchor(number)}"></a>' in (PAGE.parent / name).read_text(encoding="utf-8"):
            return name
    raise LookupError(f"no page states Eq. {number}")


def page():
    """Return the text of docs/dictionary.md."""
    symbols = [f"| ${s.latex}$ | `{s.name}` | {s.meaning} | {link(s.code)} |" for s in SYMBOLS]
    equations = [
        f"| [Eq. {number}](paper.md#eq-{number}) | {equation.title} | {', '.join(map(link, equation.code))} |"
        for number, equation in EQUATIONS.items()
    ]
    others = [
        f"| [Eq. {number}]({home(number)}#{anchor(number)}) | {title} | {', '.join(map(link, code))} |"
        for number, (title, code) in OTHERS.items()
    ]
    return "\n".join(
        [
            "# The dictionary between mathematics and code",
            "",
            "Generated from `symsvm/paper/dictionary.py` by `make docs`. All names are below `symsvm`.",
            "",
            "## Symbols",
            "",
            "| on paper | in code | what it is | where |",
            "|---|---|---|---|",
            *symbols,
            "",
            "## Equations",
            "",
            "| equation | what it says | in code |",
            "|---|---|---|",
            *equations,
            *others,
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
