"""The only door to `pytensor.function`: differentiate, choose a backend, compile."""

import importlib.util
import warnings

import pytensor
from pytensor.compile.mode import Mode, get_mode, predefined_modes

__all__ = ["MODES", "function", "grad", "resolve_mode"]

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
    if name not in predefined_modes:
        known = ", ".join(MODES)
        raise ValueError(f"mode must be one of {known}, or a PyTensor Mode, got {mode!r}.")
    if name == "JAX" and importlib.util.find_spec("jax") is None:
        raise ImportError("mode='JAX' needs JAX, which is not installed: pip install 'symsvm[jax]'.")
    return get_mode(name)


def function(inputs, outputs, *, mode=None, **kwargs):
    """Compile graphs into a function; every compilation of the package goes through here."""
    with warnings.catch_warnings():
        # JAX checks shapes itself when it traces, so PyTensor may leave its assertions on broadcasting out.
        warnings.filterwarnings("ignore", message="Skipping .* as JAX tracing would remove it", category=UserWarning)
        return pytensor.function(inputs, outputs, mode=resolve_mode(mode), **kwargs)


def grad(W, wrt):
    """The gradient of the scalar graph W with respect to one variable or several, as graphs (Eq. 25)."""
    return pytensor.grad(W, wrt)
