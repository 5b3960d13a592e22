"""Private names of other packages: they exist, only `_lib.compat` uses them, and a missing one raises a clear error."""

import ast
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode

import symsvm
from symsvm._lib import compat
from symsvm.compiler.functions import function, resolve_mode

ROOT = Path(symsvm.__file__).parent
# Modules that only compat.py may import from.
PRIVATE = ("pytensor.link", "pytensor.scan.utils", "uvicorn.protocols", "numba.core", "numba.np", "jax._src")
PACKAGES = ("pytensor", "numba", "jax", "uvicorn")
# Private names that were used once and have a public replacement.
FORMER = {"ScanArgs", "get_idx_list", "_launch_threads", "CACHED_SRC_FUNCTIONS", "jitable_func", "install_listener"}


@pytest.mark.parametrize("name", compat.PRIVATE_NAMES)
def test_a_name_exists(name):
    pytest.importorskip("jax" if "jax" in name.lower() else compat.PRIVATE_NAMES[name].package)
    assert compat.find_private(name) is not None


@pytest.mark.parametrize("name", compat.PRIVATE_NAMES)
def test_a_missing_name_is_reported(name, monkeypatch):
    package, module, versions, reason = compat.PRIVATE_NAMES[name]
    pytest.importorskip("jax" if "jax" in name.lower() else package)
    monkeypatch.delattr(f"{module}.{name}")
    installed = importlib.metadata.version(package)
    sentence = (
        f"{package} {installed} has no {name} in {module}, which symsvm needs to {reason}: install a version that is "
        f"known to work ({package} {versions}), or a newer symsvm."
    )
    with pytest.raises(compat.IncompatibleVersion, match=f"^{re.escape(sentence)}$"):
        compat.find_private(name)


def test_a_missing_module_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytensor.link.numba.linker", None)
    with pytest.raises(
        compat.IncompatibleVersion, match=r"has no module pytensor\.link\.numba\.linker, which symsvm needs"
    ):
        compat.find_private("NumbaLinker")


def test_a_missing_package_raises_its_own_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ModuleNotFoundError, match="uvicorn"):
        compat.http_protocol()


def test_known_versions_are_in_the_required_range():
    packaging = pytest.importorskip("packaging.requirements")
    wanted = [packaging.Requirement(text) for text in importlib.metadata.requires("symsvm")]
    for entry in compat.PRIVATE_NAMES.values():
        for requirement in (r for r in wanted if r.name == entry.package):
            assert all(version in requirement.specifier for version in entry.versions.split(" and ")), entry


def test_a_graph_without_source_is_reported(monkeypatch):
    x = pt.dvector("x")
    monkeypatch.setattr("symsvm.compiler.functions._COMPILED", {})
    linker = compat.numba_mode().linker
    with pytest.raises(
        compat.IncompatibleVersion, match="has no source with the function of a graph, which symsvm needs"
    ):
        linker.jit_compile((compat.numba_njit(lambda x: x), "key"))
    assert function([x], x.sum())(np.ones(3)) == 3


def test_graphs_compile_without_the_cache(monkeypatch):
    monkeypatch.setattr("symsvm.compiler.functions._COMPILED", {})
    A = pt.dmatrix("A")
    with pytensor.config.change_flags(numba__cache=False):
        compiled = function([A], [A @ A.T, A.sum(axis=1)])
        product, sums = compiled(np.ones((2, 3)))
    np.testing.assert_array_equal(product, np.full((2, 2), 3.0))
    np.testing.assert_array_equal(sums, [3.0, 3.0])


def test_sums_on_jax_keep_their_type_only_in_symsvm_graphs():
    pytest.importorskip("jax")
    mode, x = resolve_mode("JAX"), pt.fmatrix("x")
    ones = np.ones((2, 3), "float32")
    for graph in (x.sum(axis=0), x.sum(), x.prod(axis=1)):
        assert np.asarray(function([x], graph, mode="JAX")(ones)).dtype == "float32"
        stock = pytensor.function([x], graph, mode=mode)
        assert compat.is_converting_own_graph() is False
        assert np.asarray(stock.vm.jit_fn(ones)[0]).dtype == "float64"  # PyTensor's own


def test_modes_differ_from_pytensors_only_in_their_linkers():
    for own, name in ((compat.numba_mode, "NUMBA"), (compat.jax_mode, "JAX")):
        if name == "JAX":
            pytest.importorskip("jax")
        assert isinstance(own().linker, type(get_mode(name).linker))
        assert own() is own()
        assert own().provided_optimizer is get_mode(name).provided_optimizer


def test_subscripts():
    x, i = pt.dvector("x"), pt.iscalar("i")
    assert compat.subscripts(x[1:].owner)[0].start.data == 1
    assert compat.subscripts(x[i].owner)[0].owner.inputs == [i]
    assert compat.subscripts(x[2:].inc(1.0).owner)[0].start.data == 2


@pytest.mark.parametrize("method", ["on_header", "on_body", "timeout_keep_alive_handler"])
def test_a_missing_method_of_uvicorn_is_reported(method, monkeypatch):
    pytest.importorskip("uvicorn")
    pytest.importorskip("httptools")
    protocol = compat.http_protocol()
    monkeypatch.delattr(protocol, method)
    with pytest.raises(
        compat.IncompatibleVersion, match=f"^uvicorn .* has no method {method} of HttpToolsProtocol, which"
    ):
        compat.http_protocol()


@pytest.mark.parametrize("name", ["HttpToolsProtocol", "RequestResponseCycle"])
def test_a_missing_attribute_of_uvicorn_is_reported(name, monkeypatch):
    pytest.importorskip("uvicorn")
    pytest.importorskip("httptools")
    module = compat.PRIVATE_NAMES[name].module
    monkeypatch.setattr(f"{module}.{name}.__init__", lambda self: None)
    with pytest.raises(compat.IncompatibleVersion, match=f"has no attribute [a-z_]+ of {name}, which symsvm needs"):
        compat.http_protocol()


def test_the_listed_attributes_of_uvicorn_are_those_the_service_uses():
    source = (ROOT / "serve" / "connection.py").read_text(encoding="utf-8")
    classes = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ClassDef)]
    (protocol,) = [n for n in classes if n.name == "LimitedProtocol"]
    names = {
        n.attr for n in ast.walk(protocol) if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "self"
    }
    assert set(compat.UVICORN_CONNECTION) == {n for n in names if not n.startswith("_")} - set(compat.UVICORN_METHODS)
    extended = {n.name for n in protocol.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")}
    assert set(compat.UVICORN_METHODS) == extended
    cycle = {
        n.attr
        for n in ast.walk(protocol)
        if isinstance(n, ast.Attribute) and getattr(n.value, "attr", "") in ("cycle", "_running")
    }
    assert set(compat.UVICORN_CYCLE) == cycle


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_private_names_are_used_only_in_compat(path):
    if path == ROOT / "_lib" / "compat.py":
        return
    names = {*compat.PRIVATE_NAMES, *FORMER} - {"numba_njit", "register"}  # the second is a common word
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGES):
            imported = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names if alias.name.startswith(PACKAGES)]
        else:
            imported = []
            used = getattr(node, "attr", None) or getattr(node, "id", None)
            assert used not in names, f"{path.name} uses {used}, which belongs in _lib/compat.py"
        for name in imported:
            assert not name.startswith(PRIVATE), f"{path.name} imports {name}, which belongs in _lib/compat.py"
            assert not re.search(r"\._(?!_)", name), f"{path.name} imports {name}, which is private"
            assert name.rpartition(".")[2] not in {*compat.PRIVATE_NAMES, *FORMER}, f"{path.name} imports {name}"


def test_the_module_itself_is_light():
    code = f"import sys, symsvm._lib.compat; print([m for m in ('numpy', *{PACKAGES}) if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
