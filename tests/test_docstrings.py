"""Docstrings of public names parse as numpydoc and are complete."""

import importlib
import inspect
import sys
from pathlib import Path

import pytest
from numpydoc.validate import validate

import symsvm

sys.path.insert(0, str(Path(__file__).parent.parent / "docs"))

import api as generator

PUBLIC = ("symsvm", *(f"symsvm.{name}" for name in generator.PACKAGES))
# Not asked for: examples and references in every docstring (EX01, SA01, ES01), where its quotes are (GL01, GL02), a
# summary on one line (SS06, the linter's length), and a docstring where a base class has it (GL08; see test_layout).
SKIPPED = {"EX01", "SA01", "ES01", "GL01", "GL02", "GL08", "SS06"}


def _function(member):
    """The function behind a member of a class, None if there is none."""
    if isinstance(member, (classmethod, staticmethod)):
        return member.__func__
    if isinstance(member, property):
        return member.fget
    return member if inspect.isfunction(member) else None


def _names():
    """The full names of public functions, classes and methods that symsvm defines."""
    found = set()
    for home in PUBLIC:
        module = importlib.import_module(home)
        for name in module.__all__:
            target = getattr(module, name)
            if not (inspect.isclass(target) or inspect.isfunction(target)):
                continue
            if not target.__module__.startswith("symsvm"):
                continue
            own = f"{target.__module__}.{target.__qualname__}"
            found.add(own)
            for method, member in vars(target).items() if inspect.isclass(target) else ():
                function = _function(member)
                if not method.startswith("_") and function is not None and function.__module__.startswith("symsvm"):
                    found.add(f"{own}.{method}")
    return sorted(found)


@pytest.mark.parametrize("name", _names())
def test_a_docstring_is_complete(name):
    # A protocol has no constructor of its own: numpydoc sees that of any object.
    found = [(code, text) for code, text in validate(name)["errors"] if "*args" not in text]
    errors = [f"{code} {text}" for code, text in found if code not in SKIPPED]
    assert not errors, errors


def test_type_checkers_find_the_public_packages():
    """`import symsvm` is enough for `symsvm.plot.roc`, at run time and for a type checker."""
    stub = (Path(symsvm.__file__).parent / "__init__.pyi").read_text(encoding="utf-8")
    for home in PUBLIC[1:]:
        name = home.removeprefix("symsvm.")
        assert f"from symsvm import {name} as {name}\n" in stub
        assert getattr(symsvm, name) is importlib.import_module(home)


def test_the_generated_page_is_current():
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), "run `make docs`"
