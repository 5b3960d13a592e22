"""The package's own rules: who imports whom, what is public, what is documented."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import symsvm

ROOT = Path(symsvm.__file__).parent

# A package imports only from itself and from packages above it. The last six are the public names of packages above.
ORDER = (
    "_lib",
    "graphs",
    "kernels",
    "objectives",
    "compiler",
    "evaluation",
    "solvers",
    "distributed",
    "implicit",
    "heads",
    "linear",
    "paper",
    "explanation",
    "estimators",
    "io",
    "model_selection",
    "inspection",
    "serve",
    "cli",
    "__main__",
    "comparison",
    "data",
    "files",
    "jax",
    "plot",
    "text",
    "torch",
    "tuning",
)

MODULES = ["symsvm", *(m.name for m in pkgutil.walk_packages([str(ROOT)], prefix="symsvm."))]


def imports(path):
    """Return the names below symsvm that a file imports, at the top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("symsvm"):
            names = [node.module.split(".")[1]] if "." in node.module else [alias.name for alias in node.names]
            yield from (name for name in names if name != "__version__")
        elif isinstance(node, ast.Import):
            yield from [a.name.split(".")[1] for a in node.names if a.name.startswith("symsvm.")]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_above(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own == "__init__":
        return
    assert own in ORDER, f"{own} has no place in ORDER"
    for name in imports(path):
        assert ORDER.index(name) <= ORDER.index(own), f"{path.name} imports {name}, which stands below it"


def test_one_door_to_pytensor_function():
    for path in ROOT.rglob("*.py"):
        calls = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Attribute)]
        uses = [n for n in calls if n.attr == "function" and getattr(n.value, "id", "") == "pytensor"]
        assert bool(uses) == (path.name == "functions.py"), path
        evals = [n for n in calls if n.attr == "eval"]
        named = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.ImportFrom)]
        assert not evals, path
        assert not [n for n in named if n.module == "pytensor" and "function" in [a.name for a in n.names]], path


@pytest.mark.parametrize("name", MODULES)
def test_public_names_exist_and_are_documented(name):
    module = importlib.import_module(name)
    assert inspect.getdoc(module)
    if name != "symsvm":  # whose names are in the order of their homes
        assert module.__all__ == sorted(module.__all__, key=_ruff_order), "keep __all__ sorted"
    for public in module.__all__:
        target = getattr(module, public)
        if inspect.isclass(target) or inspect.isfunction(target):
            assert target.__doc__, f"{name}.{public} has no docstring"
        if inspect.isclass(target):
            for method, member in vars(target).items():
                if inspect.isfunction(member) and not method.startswith("_"):
                    # A method that overrides another may inherit its docstring.
                    assert inspect.getdoc(getattr(target, method)), f"{name}.{public}.{method} has no docstring"


def test_the_stub_names_what_the_package_exports():
    """Type checkers read `__init__.pyi`, the interpreter `__init__.py`: both have the same names."""
    tree = ast.parse((ROOT / "__init__.pyi").read_text(encoding="utf-8"))
    stub = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert alias.asname == alias.name, "a name is exported as itself"
                stub[alias.name] = node.module
    names = {name: home for name, home in stub.items() if home != "symsvm"}
    assert set(names) == set(symsvm.__all__) - {"__version__"}
    for name, home in stub.items():
        expected = getattr(symsvm, name)
        assert getattr(importlib.import_module(home), name) is expected


# Methods of named tuples, which are public by their documentation.
_OF_TUPLES = {"_asdict", "_fields", "_make", "_replace"}


def _own_names(tree):
    """The names that a module defines itself, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif _is_own_attribute(node) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _is_own_attribute(node):
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _is_private(name):
    return name.startswith("_") and not name.startswith("__")


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_private_names_stay_in_their_module(path):
    """What other modules need has a name without an underscore; `_lib.compat` alone touches that of other packages."""
    if path.name == "compat.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = set(_own_names(tree)) | _OF_TUPLES
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("symsvm"):
            assert not [alias.name for alias in node.names if _is_private(alias.name) and alias.name != "_lib"]
        elif isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in own:
            assert _is_own_attribute(node), f"line {node.lineno}: .{node.attr} belongs to another module"


def test_file_names_say_one_thing():
    names = [path.name for path in ROOT.rglob("*.py") if path.name != "__init__.py"]
    assert sorted(names) == sorted(set(names))
    assert len(list(ROOT.glob("*.py"))) <= 10
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in ROOT.rglob("*.py")) <= 450


def _ruff_order(name):
    """Constants, then classes, then the rest, as the linter sorts them."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2, name)


def test_import_is_light():
    """Heavy modules are imported when they are used, not before."""
    heavy = "numpy", "pytensor", "sklearn", "matplotlib", "jax", "pandas"
    code = f"import sys, symsvm; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_help_is_light():
    """`symsvm --help` imports no command, and nothing that only commands need."""
    code = (
        "import atexit, sys\n"
        "from symsvm.cli import main\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "sys.argv = ['symsvm', '--help']\n"
        "main()"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = [name for name in out.stderr.split() if name.startswith("symsvm")]
    assert sorted(own) == [
        "symsvm",
        "symsvm._lib",
        "symsvm._lib.interrupts",
        "symsvm.cli",
        "symsvm.cli.command_group",
    ]
