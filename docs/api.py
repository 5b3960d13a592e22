"""Write docs/api.md, the list of all public names, from the packages themselves: `python docs/api.py`."""

import importlib
import inspect
from pathlib import Path

import symsvm

PAGE = Path(__file__).with_suffix(".md")
ROOT = PAGE.parent.parent
# Packages whose `__all__` users may rely on, and the page about each.
PACKAGES = {
    "estimators": "estimators.md",
    "kernels": "extending.md#a-kernel",
    "objectives": "extending.md#an-objective",
    "solvers": "algorithms.md",
    "compiler": "rewrites.md",
    "explanation": "rewrites.md",
    "evaluation": "architecture.md",
    "distributed": "distributed.md",
    "linear": "estimators.md",
    "implicit": "gradients.md",
    "jax": "gradients.md",
    "torch": "gradients.md",
    "heads": "deep.md",
    "paper": "paper.md",
    "tuning": "tuning.md",
    "plot": "plot.md",
    "comparison": "choose.md",
    "data": "data.md",
    "text": "text.md",
    "files": "files.md",
    "serve": "serve.md",
}
# Public names without a docstring of their own.
_CONSTANTS = {
    "solvers.Callback": "The type of a function of an `Info`, called in each iteration; a true result stops the run.",
    "compiler.MODES": "The backends by name, with a description of each.",
    "comparison.PROBLEMS": "The built-in problems by name.",
    "data.SETS": "The named data sets, with a description of each.",
}
_LONGEST = 24  # characters of a default that is shown
_HEAD = """# Public names

Generated from the docstrings by `make docs`. `help(symsvm.SVC)` prints a whole docstring: parameters, attributes,
methods and examples. Names that are not on this page may change without notice."""


def call(name, target):
    """Return a name with its parameters, without types; long defaults are left out."""
    if inspect.isclass(target):
        maker = next(cls for cls in target.__mro__ if {"__init__", "__new__"} & set(vars(cls)))
        if not maker.__module__.startswith("symsvm") or getattr(target, "_is_protocol", False):
            return name  # the parameters are those of another library, or there are none
    parameters = []
    for parameter in inspect.signature(target).parameters.values():
        default = parameter.default
        shown = len(repr(default)) <= _LONGEST and not callable(default)
        default = default if shown or default is parameter.empty else ...
        parameters.append(parameter.replace(annotation=parameter.empty, default=default))
    return name + str(inspect.Signature(parameters)).replace("Ellipsis", "...")


def summary(target):
    """Return the first paragraph of a docstring, with asterisks escaped except in code."""
    text = " ".join((inspect.getdoc(target) or "").split("\n\n")[0].split()).replace("\\", "")
    parts = text.split("`")
    parts[::2] = [part.replace("*", r"\*").replace("<", r"\<").replace("_", r"\_") for part in parts[::2]]
    return "`".join(parts)


def entry(name, target):
    """Return the line of one public name."""
    path = Path(inspect.getsourcefile(target)).resolve().relative_to(ROOT)
    return f"- [`{call(name, target)}`](../{path.as_posix()}): {summary(target)}"


def page():
    """Return the text of docs/api.md: each class and function once, by its shortest name."""
    short = {id(getattr(symsvm, name)): f"symsvm.{name}" for name in symsvm.__all__ if name != "__version__"}
    lines, rest = [], dict(short)
    for home, about in PACKAGES.items():
        module = importlib.import_module(f"symsvm.{home}")
        first = module.__doc__.split("\n\n")[0].replace("\n", " ")
        lines += ["", f"## symsvm.{home}", "", f"{first} [More]({about}).", ""]
        for name in module.__all__:
            target = getattr(module, name)
            rest.pop(id(target), None)
            if inspect.isclass(target) or inspect.isfunction(target):
                lines.append(entry(short.get(id(target), f"symsvm.{home}.{name}"), target))
            else:
                lines.append(f"- `symsvm.{home}.{name}`: {_CONSTANTS[f'{home}.{name}']}")
    others = [entry(name, getattr(symsvm, name.removeprefix("symsvm."))) for name in rest.values()]
    return "\n".join([_HEAD, *lines, "", "## symsvm", "", *others, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
