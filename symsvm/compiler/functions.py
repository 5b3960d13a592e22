"""Differentiation, the choice of a backend, and compilation: the only module that calls `pytensor.function`."""

from __future__ import annotations

import functools
import importlib.util
import math
import os
import warnings
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pytensor
from pytensor.compile.mode import Mode, get_mode, optdb
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.configdefaults import config
from pytensor.gradient import DisconnectedGrad
from pytensor.gradient import grad as differentiate
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.elemwise import DimShuffle

from symsvm._lib.code_cache import prepare_directories
from symsvm._lib.compat import jax_mode, numba_mode
from symsvm._lib.forks import call_after_fork, fork_safe_lock, hold_during_fork
from symsvm.compiler.lifting import WRONG_REWRITES, lift
from symsvm.compiler.meshes import is_mesh_mode, mesh_mode, spread
from symsvm.compiler.ops.split_parts import replace_splits
from symsvm.graphs.dtypes import widen
from symsvm.graphs.structure import leaves, signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable

    from symsvm._lib.types import Graph

__all__ = [
    "COMPILING",
    "MODES",
    "Compiled",
    "add_jax_conversions",
    "function",
    "grad",
    "hoist",
    "mode_key",
    "resolve_mode",
    "shape_error",
    "value_and_grad",
]

MODES = {
    "NUMBA": "Numba, the default: multi-core CPU, compiled functions are cached on disk",
    "JAX": "JAX: CPU, GPU, TPU (the extra symsvm[jax])",
    "CVM": "PyTensor's C virtual machine (needs a C++ compiler)",
    "FAST_COMPILE": "PyTensor's Python virtual machine: hardly any compilation, slow steps",
}


def resolve_mode(mode: str | Mode | None = None, mesh: Any = None) -> Mode:
    """Return the PyTensor mode with this name, or the mode itself.

    Parameters
    ----------
    mode : str, pytensor Mode or None
        One of `MODES`, in any case, or a mode. None is Numba.
    mesh : jax.sharding.Mesh, optional
        The devices to spread kernel matrices over; the mode must then be "JAX".

    Returns
    -------
    pytensor Mode
        The mode.

    Examples
    --------
    >>> resolve_mode("numba") is resolve_mode(None)
    True
    """
    if mesh is not None:
        if mode is None or mode_key(resolve_mode(mode)) != "JAX":
            raise ValueError(f"mesh is for mode='JAX' only, and mode is {mode!r}: pass mode='JAX', or leave mesh out.")
        resolve_mode("JAX")  # with its checks
        return mesh_mode(mesh)
    if isinstance(mode, Mode):
        return mode
    name = "NUMBA" if mode is None else str(mode).upper()
    if name not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, or a PyTensor Mode, got {mode!r}.")
    if name == "JAX":
        if importlib.util.find_spec("jax") is None:
            raise ImportError("mode='JAX' needs JAX, which is not installed: pip install 'symsvm[jax]'.")
        _check_jax()
        _prepare_jax()
    return get_mode(name)


class Compiled:
    """A compiled function with its bound arguments: the numbers of the graph and its shared variables.

    The values of shared variables are read at each call. Functions of one structure share one compilation, whatever
    their numbers, and one lock: PyTensor stores results in buffers of the function, which two threads would overwrite.

    Arrays that are not contiguous by rows are copied, unless the function was compiled with `trust_input`. Numba
    compiles the whole graph again, for seconds, for each memory layout.

    Parameters
    ----------
    function : pytensor Function
        The function of the arguments, the numbers and the values of the shared variables.
    lock : RLock
        The lock of that function.
    numbers : list of ndarray
        The numbers.
    shared : list of pytensor SharedVariable
        The shared variables.
    single : bool
        Whether a call returns the first result instead of a list.

    Attributes
    ----------
    function, numbers, shared
        The parameters of the same names.
    """

    def __init__(self, function: Any, lock: Any, numbers: list, shared: list, single: bool) -> None:
        self.function, self.numbers, self.shared = function, numbers, shared
        self._lock, self._single = lock, single

    def __call__(self, *args):
        values = [*args, *self.numbers, *(v.get_value(borrow=True) for v in self.shared)]
        if not self.function.trust_input:
            values = [np.ascontiguousarray(v) if isinstance(v, np.ndarray) and v.ndim else v for v in values]
        if _JAX["lost"] and isinstance(self.function.maker.linker, type(jax_mode().linker)):
            _check_jax()
        with self._lock:
            results = self.function(*values)
        return results[0] if self._single else results


# The compiled functions and their locks, by structure. PyTensor changes settings of the process while it rewrites
# graphs: whatever rewrites or compiles takes the lock `COMPILING`.
_COMPILED: dict[tuple, tuple[Any, Any]] = {}
COMPILING = fork_safe_lock()
hold_during_fork(COMPILING)


def function(
    inputs: Sequence[Variable],
    outputs: Variable | Sequence[Variable],
    *,
    mode: str | Mode | None = None,
    memory: float | None = None,
    trust_input: bool = False,
    mesh: Any = None,
) -> Compiled:
    """Lift graphs and compile them into a function of `inputs`.

    Shared variables and the numbers in the graphs become inputs of the compiled function, which is reused for graphs of
    the same structure: another number or another data set compiles nothing.

    Parameters
    ----------
    inputs : sequence of graphs
        The arguments of the function.
    outputs : graph or sequence of graphs
        What the function computes.
    mode : str, pytensor Mode or None
        The backend; see `resolve_mode`.
    memory : float or None
        The limit in bytes for an array that replaces a loop; see `lift`. None is `symsvm.compiler.lifting.MEMORY`.
    trust_input : bool
        Whether to skip the checks and conversions of arguments.
    mesh : jax.sharding.Mesh, optional
        The devices to spread the products with kernel matrices over, by rows; for mode "JAX".

    Returns
    -------
    Compiled
        The function, which returns one array or a list of them, as `outputs` is one graph or several.
    """
    single = not isinstance(outputs, (list, tuple))
    roots: Any = [outputs] if single else outputs
    graphs: Any = widen(roots)
    mode = resolve_mode(mode, mesh)
    variables, numbers = leaves(graphs)
    shared = [v for v in variables if isinstance(v, SharedVariable) and v not in set(inputs)]
    own = [*inputs, *numbers, *shared]
    key = signature(own, graphs), mode_key(mode), memory, trust_input
    with COMPILING:
        if key not in _COMPILED:
            fresh = [v.type(name=v.name) for v in own]
            graphs = clone_replace(graphs, dict(zip(own, fresh, strict=True)))
            graphs = lift(graphs) if memory is None else lift(graphs, memory)
            if is_mesh_mode(mode):
                graphs = spread(graphs, mode.mesh, must=mesh is not None)
            compiled = _compile(fresh, graphs, mode)
            compiled.trust_input = trust_input
            _COMPILED[key] = compiled, fork_safe_lock()
        compiled, lock = _COMPILED[key]
    return Compiled(compiled, lock, [number.data for number in numbers], shared, single)


def shape_error(error: Exception, variables: Sequence[Any], shapes: Sequence[tuple]) -> ValueError:
    """Return the error of a computation whose data do not fit one another, with their names and shapes.

    Parameters
    ----------
    error : Exception
        What a backend raised.
    variables, shapes : sequence
        The inputs, and the shapes of what was given for them.

    Returns
    -------
    ValueError
        The error to raise from it.
    """
    found = [f"{v.name or 'an array'} {shape}" for v, shape in zip(variables, shapes, strict=True) if shape]
    reason = str(error).strip().partition("\n")[0].rstrip(".")
    return ValueError(f"the shapes of the data do not fit one another: {', '.join(found)} ({reason}).")


def mode_key(mode: Mode) -> str | Mode:
    """Return what identifies a mode in a cache: its name if it is one of `MODES`, else the mode itself."""
    names = [name for name in MODES if mode is get_mode(name)]
    return names[0] if names else mode


def _compile(inputs, outputs, mode):
    with warnings.catch_warnings():
        # JAX checks shapes when it traces, so PyTensor may skip its assertions on broadcasting.
        warnings.filterwarnings("ignore", message="Skipping .* as JAX tracing would remove it", category=UserWarning)
        # FAST_COMPILE looks for the BLAS of PyTensor's C backend, but does not use it.
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS", category=UserWarning)
        is_jax = mode is get_mode("JAX") or is_mesh_mode(mode)
        if is_jax and config.floatX == "float32":
            raise ValueError(
                "PyTensor's floatX is float32. JAX would then compute everything in float32 without a warning. "
                "Set floatX to float64, and pass dtype='float32' to compute in float32."
            )
        if is_jax:
            _JAX["used"] = True
            _check_devices()
        mode = _numba_mode() if mode is get_mode("NUMBA") else jax_mode() if mode is get_mode("JAX") else mode
        mode = _without_wrong_rewrites(mode)
        prepare_directories()
        compile_graphs = pytensor.function  # pyright: ignore[reportPrivateImportUsage]
        return compile_graphs(inputs, outputs, mode=mode, on_unused_input="ignore")


@functools.cache
def _without_wrong_rewrites(mode: Mode) -> Mode:
    """Return a mode without the rewrites that are wrong; `Mode.excluding` would forget the settings of its linker."""
    linker, rewrites = mode.get_linker_optimizer(mode.provided_linker, mode.provided_optimizer)
    return Mode(linker, rewrites.excluding(*WRONG_REWRITES))


@functools.cache
def _numba_mode():
    importlib.import_module("symsvm.compiler.ops.numba_dispatch")
    return numba_mode()


# Whether JAX has compiled anything in this process, and whether that was before a fork: the child lacks its threads.
_JAX = {"used": False, "lost": False}
call_after_fork(lambda: _JAX.update(lost=_JAX["used"]))


def _check_jax():
    """Raise RuntimeError in the child of a fork where JAX would wait for threads that only the parent has."""
    if _JAX["lost"]:
        raise RuntimeError(
            "This process was forked after its parent had used JAX, which would never answer here. Use mode='NUMBA', "
            "or start processes with multiprocessing.get_context('spawn') or 'forkserver'."
        )


@functools.cache
def _check_devices():
    """Raise RuntimeError if JAX finds no device; its own error may be an AssertionError without a message."""
    import jax

    try:
        jax.devices()
    except Exception as error:
        wanted = os.environ.get("JAX_PLATFORMS")
        setting = f"JAX_PLATFORMS={wanted}, which this machine or this JAX may not have" if wanted else "its default"
        raise RuntimeError(
            f"mode='JAX' found no device with {setting} ({type(error).__name__}{f': {error}' if str(error) else ''}). "
            "Set JAX_PLATFORMS=cpu, install a JAX for the device, or use mode='NUMBA'."
        ) from error


# The modules that convert symsvm's Ops to JAX, which is loaded with the first of them.
_JAX_CONVERSIONS = ["symsvm.compiler.ops.jax_dispatch", "symsvm.compiler.ops.mesh_dispatch"]


def add_jax_conversions(module: str) -> None:
    """Name a module that converts further Ops to JAX; it is imported before a graph is compiled for JAX."""
    _JAX_CONVERSIONS.append(module)
    _prepare_jax.cache_clear()


class _PrepareJax(GraphRewriter):
    """Make a graph with symsvm's Ops ready for JAX, whoever compiles it."""

    def apply(self, fgraph):
        """Register the conversions, and cut arrays where JAX can."""
        if any(type(node.op).__module__.startswith("symsvm.") for node in fgraph.apply_nodes):
            _prepare_jax()
            replace_splits(fgraph)


optdb.register("symsvm_prepare_jax", _PrepareJax(), "jax", position=0)


@functools.cache
def _prepare_jax():
    """Register the conversions to JAX, and cache on disk what XLA compiles."""
    import jax

    prepare_directories()
    for module in _JAX_CONVERSIONS:
        importlib.import_module(module)
    if jax.config.jax_compilation_cache_dir is None:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_compilation_cache_dir", str(config.base_compiledir / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@overload
def grad(W: Variable, wrt: Variable) -> Graph: ...
@overload
def grad(W: Variable, wrt: Sequence[Variable]) -> list[Graph]: ...
def grad(W, wrt):
    """The gradient of a scalar graph, as a graph (Eq. 25).

    Loops that sum are lifted first: the gradient of a sum is a sum, but that of a loop is a longer loop.

    Parameters
    ----------
    W : graph
        A scalar.
    wrt : graph or sequence of graphs
        One variable or several.

    Returns
    -------
    graph or list of graphs
        The gradient by the variable, or by each of them.
    """
    return value_and_grad(W, wrt)[1]


@overload
def value_and_grad(W: Variable, wrt: Variable) -> tuple[Graph, Graph]: ...
@overload
def value_and_grad(W: Variable, wrt: Sequence[Variable]) -> tuple[Graph, list[Graph]]: ...
def value_and_grad(W, wrt):
    """The lifted graph of W and its gradient, which share their common parts.

    Parameters
    ----------
    W : graph
        A scalar.
    wrt : graph or sequence of graphs
        One variable or several.

    Returns
    -------
    tuple of (graph, graph or list of graphs)
        W and its gradient by the variable, or by each of them.
    """
    variables = list(wrt) if isinstance(wrt, (list, tuple)) else [wrt]
    # Fresh inputs replace the variables, so that no pass simplifies them away.
    inputs = [v.type(name=v.name) for v in variables]
    # They also replace what `disconnected_grad` marks as constant, since the passes remove the mark.
    constants = [v for v in ancestors([W]) if v.owner is not None and isinstance(v.owner.op, DisconnectedGrad)]
    placeholders = [v.type() for v in constants]
    fresh = dict(zip([*variables, *constants], [*inputs, *placeholders], strict=True))
    # Without a memory limit: large matrices are tiled after differentiation, when W and its gradient share products.
    (lifted,) = lift(clone_replace([W], fresh), memory=math.inf)
    disconnected = set(variables) - set(ancestors([W]))
    gradients: Any = differentiate(lifted, inputs, disconnected_inputs="raise" if disconnected else "ignore")
    back = dict(zip([*inputs, *placeholders], [*variables, *constants], strict=True))
    result: Any = clone_replace([lifted, *gradients], back)
    lifted, *gradients = result
    return lifted, gradients if isinstance(wrt, (list, tuple)) else gradients[0]


def hoist(outputs: Sequence[Variable], variables: Sequence[Variable]) -> tuple[list[Graph], list[Graph], list[Graph]]:
    """Split graphs into a part that does not depend on `variables` and the rest.

    The first part is computed once and passed to every evaluation of the rest. Views of an input (a transpose, an added
    axis) cost nothing and stay in the rest.

    Parameters
    ----------
    outputs : sequence of graphs
        What to split.
    variables : sequence of graphs
        The variables that change between evaluations.

    Returns
    -------
    constants : list of graphs
        The graphs of the first part.
    inputs : list of graphs
        The variables that stand for them in the rest.
    rest : list of graphs
        The outputs as graphs of `inputs` and `variables`.
    """
    nodes = list(toposort(outputs))
    varying: set[Variable] = set(variables)
    for node in nodes:
        if not varying.isdisjoint(node.inputs):
            varying.update(node.outputs)
    border = [v for node in nodes if not varying.isdisjoint(node.outputs) for v in node.inputs if v not in varying]
    constants: list[Any] = list(dict.fromkeys(v for v in [*border, *outputs] if v not in varying and _is_computed(v)))
    inputs = [v.type(name=f"hoisted_{i}") for i, v in enumerate(constants)]
    rest: Any = clone_replace(list(outputs), dict(zip(constants, inputs, strict=True)))
    return constants, inputs, rest


def _is_computed(variable):
    """Whether a variable takes arithmetic to compute, and from more than constants."""
    nodes = [v.owner for v in ancestors([variable]) if v.owner is not None]
    return any(not isinstance(node.op, DimShuffle) for node in nodes) and any(
        v.owner is None and not isinstance(v, Constant) for v in ancestors([variable])
    )
