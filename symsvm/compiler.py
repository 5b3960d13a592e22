"""The only door to `pytensor.function`: differentiate, choose a backend, compile."""

import functools
import importlib.util
import warnings

import pytensor
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.elemwise import DimShuffle

from symsvm.rewrites import lift

__all__ = ["MODES", "function", "grad", "hoist", "resolve_mode", "value_and_grad"]

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
        _keep_types_on_jax()
    return get_mode(name)


def function(inputs, outputs, *, mode=None, **kwargs):
    """Lift graphs and compile them into a function; every compilation of the package goes through here."""
    outputs = lift(outputs) if isinstance(outputs, list) else lift([outputs])[0]
    with warnings.catch_warnings():
        # JAX checks shapes itself when it traces, so PyTensor may leave its assertions on broadcasting out.
        warnings.filterwarnings("ignore", message="Skipping .* as JAX tracing would remove it", category=UserWarning)
        # FAST_COMPILE asks for the BLAS of PyTensor's C backend, which it then does not use.
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS", category=UserWarning)
        mode = resolve_mode(mode)
        if mode is get_mode("JAX") and pytensor.config.floatX == "float32":
            raise ValueError(
                "PyTensor's floatX is float32, and JAX would then compute everything in float32 without a word: "
                "leave floatX at float64 and give dtype='float32' where it is wanted."
            )
        return pytensor.function(inputs, outputs, mode=mode, **kwargs)


@functools.cache
def _keep_types_on_jax():
    """Let sums keep their type on JAX: PyTensor's return the type they accumulate in, float64 for float32."""
    from pytensor.link.jax.dispatch.basic import jax_funcify
    from pytensor.tensor.elemwise import CAReduce

    stock = jax_funcify.dispatch(CAReduce)

    @jax_funcify.register(CAReduce)
    def jax_funcify_CAReduce(op, node=None, **kwargs):
        reduce = stock(op, node=node, **kwargs)
        if node is None:
            return reduce
        dtype = node.outputs[0].dtype
        return lambda x: reduce(x).astype(dtype)


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
    (lifted,) = lift(clone_replace([W], there))
    disconnected = set(variables) - set(ancestors([W]))
    gradients = pytensor.grad(lifted, inputs, disconnected_inputs="raise" if disconnected else "ignore")
    lifted, *gradients = clone_replace([lifted, *gradients], dict(zip(inputs, variables, strict=True)))
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
