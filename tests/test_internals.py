"""What symsvm touches of other packages that they do not promise: it is there, it is in one place, its lack is said."""

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
from symsvm._lib import compat as internals
from symsvm.compiler.functions import function, resolve_mode

ROOT = Path(symsvm.__file__).parent
# Modules that only internals.py may import from, whatever the name.
PRIVATE = ("pytensor.link", "pytensor.scan.utils", "uvicorn.protocols", "numba.core", "numba.np", "jax._src")
PACKAGES = ("pytensor", "numba", "jax", "uvicorn")
# Names that were touched once and have a public way.
FORMER = {"ScanArgs", "get_idx_list", "_launch_threads", "CACHED_SRC_FUNCTIONS", "jitable_func"}


@pytest.mark.parametrize("name", internals.TOUCHES)
def test_a_name_is_there(name):
    pytest.importorskip("jax" if "jax" in name.lower() else internals.TOUCHES[name].package)
    assert callable(internals._find(name))


@pytest.mark.parametrize("name", internals.TOUCHES)
def test_a_name_that_is_missing_is_said(name, monkeypatch):
    package, module, versions, why = internals.TOUCHES[name]
    pytest.importorskip("jax" if "jax" in name.lower() else package)
    monkeypatch.delattr(f"{module}.{name}")
    installed = importlib.metadata.version(package)
    sentence = (
        f"{package} {installed} has no {name} in {module}, which symsvm needs to {why}: install a version that is "
        f"known to work ({package} {versions}), or a newer symsvm."
    )
    with pytest.raises(internals.Incompatible, match=f"^{re.escape(sentence)}$"):
        internals._find(name)


def test_a_module_that_is_missing_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytensor.link.numba.linker", None)
    with pytest.raises(
        internals.Incompatible, match=r"has no module pytensor\.link\.numba\.linker, which symsvm needs"
    ):
        internals._find("NumbaLinker")


def test_a_package_that_is_missing_says_so_itself(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ModuleNotFoundError, match="uvicorn"):
        internals.http_protocol()


def test_the_known_versions_are_in_the_range_that_is_asked_for():
    packaging = pytest.importorskip("packaging.requirements")
    wanted = [packaging.Requirement(text) for text in importlib.metadata.requires("symsvm")]
    for touch in internals.TOUCHES.values():
        for requirement in (r for r in wanted if r.name == touch.package):
            assert all(version in requirement.specifier for version in touch.versions.split(" and ")), touch


def test_a_graph_without_its_source_is_said(monkeypatch):
    x = pt.dvector("x")
    monkeypatch.setattr("symsvm.compiler.functions._COMPILED", {})
    linker = internals.numba_mode().linker
    with pytest.raises(internals.Incompatible, match="has no source with the function of a graph, which symsvm needs"):
        linker.jit_compile((internals.numba_njit(lambda x: x), "key"))
    assert function([x], x.sum())(np.ones(3)) == 3


def test_graphs_are_compiled_without_the_cache_too(monkeypatch):
    monkeypatch.setattr("symsvm.compiler.functions._COMPILED", {})
    A = pt.dmatrix("A")
    with pytensor.config.change_flags(numba__cache=False):
        compiled = function([A], [A @ A.T, A.sum(axis=1)])
        product, sums = compiled(np.ones((2, 3)))
    np.testing.assert_array_equal(product, np.full((2, 2), 3.0))
    np.testing.assert_array_equal(sums, [3.0, 3.0])


def test_sums_on_jax_keep_their_type_in_our_graphs_only():
    pytest.importorskip("jax")
    mode, x = resolve_mode("JAX"), pt.fmatrix("x")
    ones = np.ones((2, 3), "float32")
    for graph in (x.sum(axis=0), x.sum(), x.prod(axis=1)):
        assert np.asarray(function([x], graph, mode="JAX")(ones)).dtype == "float32"
        stock = pytensor.function([x], graph, mode=mode)
        assert internals._OURS.get() is False
        assert np.asarray(stock.vm.jit_fn(ones)[0]).dtype == "float64"  # PyTensor's own


def test_modes_are_pytensors_beside_their_linkers():
    for own, name in ((internals.numba_mode, "NUMBA"), (internals.jax_mode, "JAX")):
        if name == "JAX":
            pytest.importorskip("jax")
        assert isinstance(own().linker, type(get_mode(name).linker))
        assert own() is own()
        assert own().provided_optimizer is get_mode(name).provided_optimizer


def test_subscripts():
    x, i = pt.dvector("x"), pt.iscalar("i")
    assert internals.subscripts(x[1:].owner)[0].start.data == 1
    assert internals.subscripts(x[i].owner)[0].owner.inputs == [i]
    assert internals.subscripts(x[2:].inc(1.0).owner)[0].start.data == 2


@pytest.mark.parametrize("lack", ["on_header", "on_body", "timeout_keep_alive_handler"])
def test_a_method_of_uvicorn_that_is_missing_is_said(lack, monkeypatch):
    pytest.importorskip("uvicorn")
    pytest.importorskip("httptools")
    protocol = internals.http_protocol()
    monkeypatch.delattr(protocol, lack)
    with pytest.raises(internals.Incompatible, match=f"^uvicorn .* has no method {lack} of HttpToolsProtocol, which"):
        internals.http_protocol()


@pytest.mark.parametrize("name", ["HttpToolsProtocol", "RequestResponseCycle"])
def test_an_attribute_of_uvicorn_that_is_missing_is_said(name, monkeypatch):
    pytest.importorskip("uvicorn")
    pytest.importorskip("httptools")
    module = internals.TOUCHES[name].module
    monkeypatch.setattr(f"{module}.{name}.__init__", lambda self: None)
    with pytest.raises(internals.Incompatible, match=f"has no attribute [a-z_]+ of {name}, which symsvm needs"):
        internals.http_protocol()


def test_the_attributes_of_uvicorn_are_those_that_the_service_uses():
    source = (ROOT / "serve" / "server.py").read_text(encoding="utf-8")
    classes = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ClassDef)]
    (protocol,) = [n for n in classes if n.name == "LimitedProtocol"]
    names = {
        n.attr for n in ast.walk(protocol) if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "self"
    }
    assert set(internals._CONNECTION) == {n for n in names if not n.startswith("_")} - set(internals._METHODS)
    extended = {n.name for n in protocol.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")}
    assert set(internals._METHODS) == extended
    cycle = {
        n.attr for n in ast.walk(protocol) if isinstance(n, ast.Attribute) and getattr(n.value, "attr", "") == "cycle"
    }
    assert set(internals._CYCLE) == cycle


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_private_is_touched_elsewhere(path):
    if path == ROOT / "internals.py":
        return
    names = {*internals.TOUCHES, *FORMER} - {"numba_njit"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGES):
            imported = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names if alias.name.startswith(PACKAGES)]
        else:
            imported = []
            used = getattr(node, "attr", None) or getattr(node, "id", None)
            assert used not in names, f"{path.name} uses {used}, which belongs in internals.py"
        for name in imported:
            assert not name.startswith(PRIVATE), f"{path.name} imports {name}, which belongs in internals.py"
            assert not re.search(r"\._(?!_)", name), f"{path.name} imports {name}, which is private"
            assert name.rpartition(".")[2] not in {*internals.TOUCHES, *FORMER}, f"{path.name} imports {name}"


def test_the_module_itself_is_light():
    code = f"import sys, symsvm._lib.compat; print([m for m in ('numpy', *{PACKAGES}) if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
