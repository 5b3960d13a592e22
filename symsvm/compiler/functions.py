"""The only door to `pytensor.function`: differentiate, choose a backend, compile."""

import functools
import importlib.util
import math
import threading
import warnings

import numpy as np
import pytensor
from pytensor.compile.mode import Mode, get_mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.gradient import DisconnectedGrad
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.elemwise import DimShuffle

from symsvm._lib.compat import jax_mode, numba_mode
from symsvm.compiler.lifting import lift
from symsvm.graphs.dtypes import widen
from symsvm.graphs.structure import leaves, signature

__all__ = ["MODES", "Compiled", "function", "grad", "hoist", "mode_key", "resolve_mode", "value_and_grad"]

MODES = {
    "NUMBA": "Numba, the default: multi-core CPU, compiled functions are cached on disk",
    "JAX": "JAX: CPU, GPU, TPU (the extra symsvm[jax])",
    "CVM": "PyTensor's C virtual machine (needs a C++ compiler)",
    "FAST_COMPILE": "PyTensor's Python virtual machine: hardly any compilation, slow steps",
}


def resolve_mode(mode=None):
    """Return the PyTensor mode with this name (None is Numba), or the mode itself.

    >>> resolve_mode("numba") is resolve_mode(None)
    True
    """
    if isinstance(mode, Mode):
        return mode
    name = "NUMBA" if mode is None else str(mode).upper()
    if name not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, or a PyTensor Mode, got {mode!r}.")
    if name == "JAX":
        if importlib.util.find_spec("jax") is None:
            raise ImportError("mode='JAX' needs JAX, which is not installed: pip install 'symsvm[jax]'.")
        _prepare_jax()
    return get_mode(name)


class Compiled:
    """A compiled function with what it was bound to: numbers out of the graph, and shared variables, read at each call.

    Functions of one structure share one compilation, whatever the numbers in them are, and one lock: PyTensor keeps
    what it computes in places of the function, where two threads would overwrite each other's.

    Arrays that do not lie by rows are copied, unless `trust_input` says that they are what they should be: to Numba
    each layout is a type of its own, for which it would compile the whole graph again, for seconds.
    """

    def __init__(self, function, lock, numbers, shared, single):
        self.function, self.numbers, self.shared = function, numbers, shared
        self._lock, self._single = lock, single

    def __call__(self, *args):
        values = [*args, *self.numbers, *(v.get_value(borrow=True) for v in self.shared)]
        if not self.function.trust_input:
            values = [np.ascontiguousarray(v) if isinstance(v, np.ndarray) and v.ndim else v for v in values]
        with self._lock:
            results = self.function(*values)
        return results[0] if self._single else results


_COMPILED, _COMPILING = {}, threading.RLock()


def function(inputs, outputs, *, mode=None, memory=None, trust_input=False):
    """Lift graphs and compile them into a function of `inputs`; every compilation of the package goes through here.

    Shared variables and the numbers in the graphs become inputs of what is compiled, which is kept for the next graphs
    of the same structure: another number, another data set compile nothing.
    """
    single = not isinstance(outputs, (list, tuple))
    outputs = widen([outputs] if single else outputs)
    mode = resolve_mode(mode)
    variables, numbers = leaves(outputs)
    shared = [v for v in variables if isinstance(v, SharedVariable) and v not in set(inputs)]
    own = [*inputs, *numbers, *shared]
    key = signature(own, outputs), mode_key(mode), memory, trust_input
    with _COMPILING:
        if key not in _COMPILED:
            fresh = [v.type(name=v.name) for v in own]
            graphs = clone_replace(outputs, dict(zip(own, fresh, strict=True)))
            graphs = lift(graphs) if memory is None else lift(graphs, memory)
            compiled = _compile(fresh, graphs, mode)
            compiled.trust_input = trust_input
            _COMPILED[key] = compiled, threading.RLock()
    return Compiled(*_COMPILED[key], [number.data for number in numbers], shared, single)


def mode_key(mode):
    """Modes are compared by what they are made of; a mode of the user's own by itself."""
    names = [name for name in MODES if mode is get_mode(name)]
    return names[0] if names else mode


def _compile(inputs, outputs, mode):
    with warnings.catch_warnings():
        # JAX checks shapes itself when it traces, so PyTensor may leave its assertions on broadcasting out.
        warnings.filterwarnings("ignore", message="Skipping .* as JAX tracing would remove it", category=UserWarning)
        # FAST_COMPILE asks for the BLAS of PyTensor's C backend, which it then does not use.
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS", category=UserWarning)
        if mode is get_mode("JAX") and pytensor.config.floatX == "float32":
            raise ValueError(
                "PyTensor's floatX is float32, and JAX would then compute everything in float32 without a word: "
                "leave floatX at float64 and give dtype='float32' where it is wanted."
            )
        mode = _numba_mode() if mode is get_mode("NUMBA") else jax_mode() if mode is get_mode("JAX") else mode
        return pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")


@functools.cache
def _numba_mode():
    importlib.import_module("symsvm.compiler.ops.numba_arrays")
    return numba_mode()


@functools.cache
def _prepare_jax():
    """Teach PyTensor's JAX backend our Ops, and keep what XLA compiles for the next process."""
    import jax

    importlib.import_module("symsvm.compiler.ops.jax_dispatch")
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(pytensor.config.base_compiledir / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def grad(W, wrt):
    """The gradient of the scalar graph W with respect to one variable or several, as graphs (Eq. 25).

    Sums are lifted out of their loops first: the gradient of a sum is a sum, that of a loop is a longer loop.
    """
    return value_and_grad(W, wrt)[1]


def value_and_grad(W, wrt):
    """The lifted graph of W, and the gradient, which shares its parts."""
    variables = list(wrt) if isinstance(wrt, (list, tuple)) else [wrt]
    # Inputs of their own, so that no pass can fold or simplify away what is to be differentiated by.
    inputs = [v.type(name=v.name) for v in variables]
    there = dict(zip(variables, inputs, strict=True))
    # What is marked as constant to the gradient (`disconnected_grad`) as well, for the passes remove the mark.
    constant = [v for v in ancestors([W]) if v.owner is not None and isinstance(v.owner.op, DisconnectedGrad)]
    held = [v.type() for v in constant]
    # Whatever its size: what is too large for the memory is tiled after differentiation, where one product serves all.
    (lifted,) = lift(clone_replace([W], there | dict(zip(constant, held, strict=True))), memory=math.inf)
    disconnected = set(variables) - set(ancestors([W]))
    gradients = pytensor.grad(lifted, inputs, disconnected_inputs="raise" if disconnected else "ignore")
    back = dict(zip([*inputs, *held], [*variables, *constant], strict=True))
    lifted, *gradients = clone_replace([lifted, *gradients], back)
    return lifted, gradients if isinstance(wrt, (list, tuple)) else gradients[0]


def hoist(outputs, variables):
    """Split graphs at what does not depend on `variables`: return (constants, inputs, outputs over the inputs).

    `constants` are computed once and given as `inputs` to every evaluation of the outputs. What is only a view of an
    input (a transpose, an added axis) is no work and stays.
    """
    nodes = list(toposort(outputs))
    varying = set(variables)
    for node in nodes:
        if not varying.isdisjoint(node.inputs):
            varying.update(node.outputs)
    border = [v for node in nodes if not varying.isdisjoint(node.outputs) for v in node.inputs if v not in varying]
    constants = list(dict.fromkeys(v for v in [*border, *outputs] if v not in varying and _is_work(v)))
    inputs = [v.type(name=f"hoisted_{i}") for i, v in enumerate(constants)]
    return constants, inputs, clone_replace(outputs, dict(zip(constants, inputs, strict=True)))


def _is_work(variable):
    """Say whether a variable takes arithmetic to compute, from something else than constants."""
    nodes = [v.owner for v in ancestors([variable]) if v.owner is not None]
    return any(not isinstance(node.op, DimShuffle) for node in nodes) and any(
        v.owner is None and not isinstance(v, Constant) for v in ancestors([variable])
    )
