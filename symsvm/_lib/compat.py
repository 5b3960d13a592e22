"""Internals: the only module that touches private or undocumented names of PyTensor, Numba, JAX and uvicorn.

`TOUCHES` lists them, with the versions they are known to work with and the reason. A name is looked up where it is
used, not when this module is imported: JAX and uvicorn are optional, and slow to import. Where it is missing, or is not
what it was, `Incompatible` says so in one sentence.

Numba and JAX themselves are used by public names only. PyTensor's conversions of an Op (to Numba, to JAX) belong to the
whole process; `own_on_numba` and `own_on_jax` replace one of them for the graphs that symsvm compiles, by
`numba_mode` and `jax_mode`, and leave it as it is for all others.
"""

import functools
import importlib
import importlib.metadata
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

__all__ = [
    "TOUCHES",
    "Incompatible",
    "Touch",
    "http_protocol",
    "jax_function",
    "jax_mode",
    "numba_mode",
    "numba_njit",
    "numba_source",
    "on_jax",
    "on_numba",
    "own_on_jax",
    "own_on_numba",
    "subscripts",
]


class Incompatible(ImportError):
    """An installed package lacks something private that symsvm relies on."""


class Touch(NamedTuple):
    """A name in a module of another package, the versions of that package that have it, and what it is needed for."""

    package: str
    module: str
    versions: str
    why: str


_PYTENSOR = "3.0.7 and 3.3.6"

TOUCHES = {
    "NumbaLinker": Touch("pytensor", "pytensor.link.numba.linker", _PYTENSOR, "compile the function of a graph once"),
    "numba_funcify_and_cache_key": Touch(
        "pytensor", "pytensor.link.numba.dispatch.basic", _PYTENSOR, "convert graphs to Numba, with products of its own"
    ),
    "numba_funcify": Touch(
        "pytensor", "pytensor.link.numba.dispatch.basic", _PYTENSOR, "do so where PyTensor's numba__cache is off"
    ),
    "numba_njit": Touch("pytensor", "pytensor.link.numba.dispatch.basic", _PYTENSOR, "compile with PyTensor's flags"),
    "register_funcify_and_cache_key": Touch(
        "pytensor", "pytensor.link.numba.dispatch.basic", _PYTENSOR, "run its Ops on Numba, cached on disk"
    ),
    "compile_numba_function_src": Touch(
        "pytensor", "pytensor.link.numba.cache", _PYTENSOR, "cache generated loops on disk"
    ),
    "JAXLinker": Touch("pytensor", "pytensor.link.jax.linker", _PYTENSOR, "let sums in float32 stay so on JAX"),
    "jax_funcify": Touch("pytensor", "pytensor.link.jax.dispatch.basic", _PYTENSOR, "run its Ops on JAX"),
    "indices_from_subtensor": Touch("pytensor", "pytensor.tensor.subtensor", _PYTENSOR, "read x[i:j] in a graph"),
    "HttpToolsProtocol": Touch(
        "uvicorn", "uvicorn.protocols.http.httptools_impl", "0.54.0", "limit the headers and the time of requests"
    ),
    "RequestResponseCycle": Touch(
        "uvicorn", "uvicorn.protocols.http.httptools_impl", "0.54.0", "know whether an answer has begun"
    ),
}

# What `HttpToolsProtocol` must have: methods that are extended, and attributes of a connection and of its cycle.
_METHODS = (
    "connection_made",
    "connection_lost",
    "data_received",
    "send_400_response",
    "on_message_begin",
    "on_url",
    "on_header",
    "on_headers_complete",
    "on_body",
    "on_message_complete",
    "on_response_complete",
    "timeout_keep_alive_handler",
)
_CONNECTION = ("app", "connections", "cycle", "headers", "loop", "parser", "transport")
_CYCLE = ("response_complete", "response_started")


def _find(name):
    """The object behind a name of `TOUCHES`."""
    touch = TOUCHES[name]
    importlib.import_module(touch.package)  # says itself that it is not installed
    try:
        return getattr(importlib.import_module(touch.module), name)
    except AttributeError:
        raise _incompatible(name, f"no {name} in {touch.module}") from None
    except ModuleNotFoundError as error:
        if not touch.module.startswith(error.name or "?"):
            raise  # something else is not installed, JAX say
        raise _incompatible(name, f"no module {touch.module}") from None


def _incompatible(name, lack):
    package, _, versions, why = TOUCHES[name]
    return Incompatible(
        f"{package} {importlib.metadata.version(package)} has {lack}, which symsvm needs to {why}: install a version "
        f"that is known to work ({package} {versions}), or a newer symsvm."
    )


# PyTensor on Numba


def numba_source(source, name, scope, key=None):
    """The function with this name from source, for Numba; with a key it is cached on disk under it."""
    return _find("compile_numba_function_src")(source, name, scope, cache_key=key)


def numba_njit(*args, **options):
    """`numba.njit` with PyTensor's flags, for what is called from compiled code only."""
    return _find("numba_njit")(*args, **options)


def on_numba(*op_types):
    """Decorate the function of (op, node, **kwargs) that converts Ops of our own to (compiled function, key)."""

    def register(convert):
        for op_type in op_types:
            _find("register_funcify_and_cache_key")(op_type)(convert)
        return convert

    return register


def own_on_numba(op_type):
    """Decorate the function of (op, node, stock) that converts Ops of PyTensor to (compiled function, key).

    It is used in the graphs that symsvm compiles only; stock() is PyTensor's conversion.
    """

    def register(convert):
        _own(_find("numba_funcify_and_cache_key"), op_type, convert)
        # PyTensor's other table has functions without keys, and is used where nothing is to be cached.
        plain = _find("numba_funcify")
        _own(plain, op_type, lambda op, node, stock: convert(op, node, lambda: (stock(), None))[0])
        return convert

    return register


# Whether the graph that is being converted is one of ours.
_OURS = ContextVar("symsvm_converts", default=False)


@contextmanager
def _ours():
    token = _OURS.set(True)
    try:
        yield
    finally:
        _OURS.reset(token)


def _own(registry, op_type, convert):
    before = registry.dispatch(op_type)

    @registry.register(op_type)
    def converted(op, node=None, **kwargs):
        def stock():
            return before(op, node=node, **kwargs)

        return convert(op, node, stock) if _OURS.get() and node is not None else stock()


@functools.cache
def numba_mode():
    """PyTensor's mode NUMBA, with a linker that compiles the function of a graph itself.

    PyTensor compiles it, and once more within one that only calls it.
    """
    from pytensor import config
    from pytensor.compile.mode import Mode, get_mode

    importlib.import_module("pytensor.link.numba.dispatch")  # its conversions
    convert = _find("numba_funcify_and_cache_key")

    class DirectNumbaLinker(_find("NumbaLinker")):
        def fgraph_convert(self, fgraph, **kwargs):
            with _ours():
                return convert(fgraph, **kwargs) if config.numba__cache else super().fgraph_convert(fgraph, **kwargs)

        def jit_compile(self, converted):
            function, key = converted
            if key is None:
                return super().jit_compile(converted)
            inner = getattr(function, "py_func", None)
            if not hasattr(inner, "__source__"):
                raise _incompatible("numba_funcify_and_cache_key", "no source with the function of a graph")
            # Under a name that stays, where Numba's cache looks for it; PyTensor's has that of a temporary file.
            key = f"direct_{key}_fastmath{int(config.numba__fastmath)}"
            graph = numba_source(inner.__source__, inner.__name__, dict(inner.__globals__), key)
            return numba_njit(graph, final_function=True, no_cfunc_wrapper=True, cache=True)

    return Mode(DirectNumbaLinker(), get_mode("NUMBA").provided_optimizer)


# PyTensor on JAX


def jax_function(graph):
    """The JAX function of a `FunctionGraph`."""
    return _find("jax_funcify")(graph)


def on_jax(*op_types):
    """Decorate the function of (op, node, **kwargs) that converts Ops of our own to a JAX function."""

    def register(convert):
        for op_type in op_types:
            _find("jax_funcify").register(op_type)(convert)
        return convert

    return register


def own_on_jax(op_type):
    """Decorate the function of (op, node, stock) that converts Ops of PyTensor to a JAX function.

    It is used in the graphs that symsvm compiles only; stock() is PyTensor's conversion.
    """

    def register(convert):
        _own(_find("jax_funcify"), op_type, convert)
        return convert

    return register


@functools.cache
def jax_mode():
    """PyTensor's mode JAX, with the conversions of `own_on_jax`."""
    from pytensor.compile.mode import Mode, get_mode

    class OwnJAXLinker(_find("JAXLinker")):
        def fgraph_convert(self, fgraph, *args, **kwargs):
            with _ours():
                return super().fgraph_convert(fgraph, *args, **kwargs)

    return Mode(OwnJAXLinker(), get_mode("JAX").provided_optimizer)


# PyTensor's graphs


def subscripts(node):
    """The indices of a node x[...] or set/inc(x[...], y): integers, slices and variables."""
    from pytensor.tensor.subtensor import Subtensor

    arguments = node.inputs[1:] if isinstance(node.op, Subtensor) else node.inputs[2:]
    return _find("indices_from_subtensor")(arguments, node.op.idx_list)


# uvicorn


def http_protocol():
    """The class of uvicorn's connections over HTTP/1.1, with all that `serve.server` relies on."""
    connection, cycle = _find("HttpToolsProtocol"), _find("RequestResponseCycle")
    for name in _METHODS:
        if not callable(getattr(connection, name, None)):
            raise _incompatible("HttpToolsProtocol", f"no method {name} of HttpToolsProtocol")
    for owner, own, names in (("HttpToolsProtocol", connection, _CONNECTION), ("RequestResponseCycle", cycle, _CYCLE)):
        for name in names:
            if name not in own.__init__.__code__.co_names:  # the attributes that it sets
                raise _incompatible(owner, f"no attribute {name} of {owner}")
    return connection
