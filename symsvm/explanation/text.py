"""Text: a report as plain text, formulas indented, at most 110 columns."""

import textwrap

from symsvm.compiler.lifting import PASSES

__all__ = ["text"]

_WHEN = {
    "once": "After the passes, once a run",
    "tile": "After the passes, in each step, a tile at a time",
    "step": "After the passes, in each step",
}


def text(found):
    """Write a `Report` as text."""
    equations = [f"  Eq. {n}: {title}" for n, title in found.equations.items()]
    width = max(map(len, PASSES))
    fired = [f"  {name:<{width}}  {n}" for name, n in found.fired.items()]
    missed = ", ".join(name for name in PASSES if name not in found.fired)
    sections = [
        [found.problem, *equations],
        ["As written", *map(_line, found.written.lines)],
        ["Passes, and how many nodes each replaced", *fired, _wrapped(f"not used: {missed}", "    ", "  ")],
        [_wrapped(note, "") for note in found.notes],
        *([title, *_lines(found, when)] for when, title in _WHEN.items() if when in found.when.values()),
        [
            _wrapped(f"{name}: {value}", "  ")
            for name, value in (("Step", found.step), ("Memory", found.memory), ("Backend", found.backend))
        ],
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _lines(found, when):
    """The lines that are computed then, with what is held of them."""
    for line in found.running.lines:
        if found.when[line.name] == when:
            yield _line(line)
            if line.name in found.held:
                yield f"    held: {found.held[line.name]}"


def _line(line):
    """A line, the terms of its loops indented below it."""
    first, *rest = str(line).split("\n")
    rows = [_wrapped(first, "      ", "  ")]
    rows += [_wrapped(row, " " * (8 + 2 * depth), " " * (4 + 2 * depth)) for depth, row in enumerate(rest)]
    return "\n".join(rows)


def _wrapped(text, indent, first=""):
    text = text.replace(", ", ",\u00a0") if " = " in text else text  # break a formula at its operators only
    rows = textwrap.wrap(text, 110, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(rows).replace("\u00a0", " ")
