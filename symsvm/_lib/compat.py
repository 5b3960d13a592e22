"""Private names of other packages: the only module that uses those of PyTensor, Numba, JAX and uvicorn.

`PRIVATE_NAMES` lists them, with the versions that are known to have them and the reason why each is needed. A name is
looked up when it is used, not when this module is imported: JAX and uvicorn are optional and slow to import. If a name
is missing or has changed, `IncompatibleVersion` says which.

Of JAX itself only public names are used. PyTensor's conversions of an Op to Numba or JAX apply to the
whole process. `override_numba` and `override_jax` replace one of them only in the graphs that symsvm compiles, which it
does with `numba_mode` and `jax_mode`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import sys
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytensor.compile.mode import Mode
    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

__all__ = [
    "PRIVATE_NAMES",
    "UVICORN_CONNECTION",
    "UVICORN_CYCLE",
    "UVICORN_METHODS",
    "IncompatibleVersion",
    "PrivateName",
    "compile_source",
    "converting_own_graph",
    "find_private",
    "http_protocol",
    "is_compiling",
    "is_converting_own_graph",
    "jax_function",
    "jax_mode",
    "listen_to_numba",
    "new_array",
    "numba_compiler_lock",
    "numba_mode",
    "numba_njit",
    "override_jax",
    "override_numba",
    "register_jax",
    "register_numba",
    "renew_lock",
    "replace_base_compiledir",
    "replace_function_cache",
    "shape_errors",
    "subscripts",
]


class IncompatibleVersion(ImportError):
    """An installed package lacks a private name that symsvm uses."""


class PrivateName(NamedTuple):
    """Where a name is: the package, the module, the versions known to have it, and what symsvm needs it for."""

    package: str
    module: str
    versions: str
    reason: str


def _pytensor(module: str, reason: str) -> PrivateName:
    return PrivateName("pytensor", f"pytensor.{module}", "3.0.7 and 3.3.6", reason)


def _numba(module: str, reason: str) -> PrivateName:
    return PrivateName("numba", f"numba.core.{module}", "0.65.1 and 0.68.0", reason)


def _uvicorn(reason: str) -> PrivateName:
    return PrivateName("uvicorn", "uvicorn.protocols.http.httptools_impl", "0.54.0", reason)


_NUMBA = "link.numba.dispatch.basic"

PRIVATE_NAMES: dict[str, PrivateName] = {
    "NumbaLinker": _pytensor("link.numba.linker", "compile the function of a graph once"),
    "numba_funcify_and_cache_key": _pytensor(_NUMBA, "convert graphs to Numba with its own products"),
    "numba_funcify": _pytensor(_NUMBA, "convert graphs to Numba when PyTensor's numba__cache is off"),
    "numba_njit": _pytensor(_NUMBA, "compile with PyTensor's flags"),
    "register_funcify_and_cache_key": _pytensor(_NUMBA, "run its Ops on Numba, cached on disk"),
    "compile_numba_function_src": _pytensor("link.numba.cache", "cache generated loops on disk"),
    "FunctionCache": _numba("caching", "keep errors of the cache from stopping a fit"),
    "IndexDataCacheFile": _numba("caching", "recognise damaged files of the cache"),
    "NullCache": _numba("caching", "compile without a cache"),
    "rtsys": _numba("runtime", "load functions of the cache without all that compiling them takes"),
    "Listener": _numba("event", "say that it compiles"),
    "register": _numba("event", "say that it compiles"),
    "raise_with_shape_context": PrivateName(
        "numba", "numba.np.arrayobj", "0.65.1 and 0.68.0", "compile assignments to slices in a part of the time"
    ),
    "populate_array": PrivateName("numba", "numba.np.arrayobj", "0.65.1 and 0.68.0", "begin arrays with a cache line"),
    "JAXLinker": _pytensor("link.jax.linker", "keep the type of sums in float32 on JAX"),
    "jax_funcify": _pytensor("link.jax.dispatch.basic", "run its Ops on JAX"),
    "indices_from_subtensor": _pytensor("tensor.subtensor", "read x[i:j] in a graph"),
    "HttpToolsProtocol": _uvicorn("limit the headers and the time of requests"),
    "RequestResponseCycle": _uvicorn("know whether an answer has begun"),
}

# What symsvm.serve uses of `HttpToolsProtocol`: methods that it extends, attributes of a connection and of its cycle.
# fmt: off
UVICORN_METHODS = (
    "connection_made", "connection_lost", "eof_received", "shutdown", "data_received", "send_400_response",
    "on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body", "on_message_complete",
    "on_response_complete", "pause_writing", "resume_writing", "timeout_keep_alive_handler",
)
UVICORN_CONNECTION = (
    "app", "connections", "cycle", "flow", "headers", "loop", "parser", "pipeline", "timeout_keep_alive_task",
    "transport",
)
# fmt: on
UVICORN_CYCLE = ("disconnected", "keep_alive", "response_complete", "response_started")


def find_private(name: str) -> Any:
    """Return the object of a name in `PRIVATE_NAMES`, or raise `IncompatibleVersion`."""
    entry = PRIVATE_NAMES[name]
    if entry.package == "pytensor":
        importlib.import_module("symsvm._lib.code_cache").prepare_directories()
    importlib.import_module(entry.package)  # raises its own error if it is not installed
    try:
        return getattr(importlib.import_module(entry.module), name)
    except AttributeError:
        raise _incompatible(name, f"no {name} in {entry.module}") from None
    except ModuleNotFoundError as error:
        if not entry.module.startswith(error.name or "?"):
            raise  # another package is not installed, such as JAX
        raise _incompatible(name, f"no module {entry.module}") from None


def _incompatible(name: str, missing: str) -> IncompatibleVersion:
    package, _, versions, reason = PRIVATE_NAMES[name]
    return IncompatibleVersion(
        f"{package} {importlib.metadata.version(package)} has {missing}, which symsvm needs to {reason}: install a "
        f"version that is known to work ({package} {versions}), or a newer symsvm."
    )


# PyTensor on Numba


def compile_source(source: str, name: str, scope: dict, key: str | None = None) -> Callable:
    """Return the function `name` of the source, for Numba; with a key, Numba caches it on disk under that key."""
    return find_private("compile_numba_function_src")(source, name, scope, cache_key=key)


def numba_njit(*args: Any, **options: Any) -> Any:
    """Call `numba.njit` with PyTensor's flags, for a function that only compiled code calls."""
    return find_private("numba_njit")(*args, **options)


def register_numba(*op_types: type) -> Callable:
    """Decorate the function of (op, node, **kwargs) that converts symsvm's Ops to (compiled function, key)."""

    def register(convert):
        for op_type in op_types:
            find_private("register_funcify_and_cache_key")(op_type)(convert)
        return convert

    return register


def override_numba(op_type: type) -> Callable:
    """Decorate the function of (op, node, stock) that converts an Op of PyTensor to (compiled function, key).

    It applies only to the graphs that symsvm compiles; stock() is PyTensor's conversion.
    """

    def register(convert):
        _override(find_private("numba_funcify_and_cache_key"), op_type, convert)
        # PyTensor's other registry returns functions without keys; it is used when nothing is cached.
        plain = find_private("numba_funcify")
        _override(plain, op_type, lambda op, node, stock: convert(op, node, lambda: (stock(), None))[0])
        return convert

    return register


# Whether the graph that is being converted is compiled by symsvm.
_CONVERTING = ContextVar("symsvm_converting", default=False)


@contextmanager
def converting_own_graph() -> Iterator[None]:
    """Apply the overridden conversions inside the block."""
    token = _CONVERTING.set(True)
    try:
        yield
    finally:
        _CONVERTING.reset(token)


def is_converting_own_graph() -> bool:
    """Whether the overridden conversions apply."""
    return _CONVERTING.get()


def _override(registry, op_type, convert):
    before = registry.dispatch(op_type)

    @registry.register(op_type)
    def converted(op, node=None, **kwargs):
        def stock():
            return before(op, node=node, **kwargs)

        return convert(op, node, stock) if is_converting_own_graph() and node is not None else stock()


@functools.cache
def numba_mode() -> Mode:
    """Return PyTensor's mode NUMBA, with a linker that compiles the function of a graph once.

    PyTensor compiles it twice, the second time inside a function that only calls it.
    """
    from pytensor.compile.mode import Mode, get_mode
    from pytensor.configdefaults import config

    from symsvm._lib.code_cache import prepare_directories, safe_caches

    prepare_directories()
    importlib.import_module("pytensor.link.numba.dispatch")  # registers PyTensor's conversions
    convert = find_private("numba_funcify_and_cache_key")

    class DirectNumbaLinker(find_private("NumbaLinker")):
        def fgraph_convert(self, fgraph, **kwargs):
            with converting_own_graph(), safe_caches():
                return convert(fgraph, **kwargs) if config.numba__cache else super().fgraph_convert(fgraph, **kwargs)

        def jit_compile(self, converted):
            function, key = converted
            if key is None:
                return super().jit_compile(converted)
            inner: Any = getattr(function, "py_func", None)
            if not hasattr(inner, "__source__"):
                raise _incompatible("numba_funcify_and_cache_key", "no source with the function of a graph")
            # Under a fixed key, by which Numba's cache finds it again; PyTensor's has the name of a temporary file.
            key = f"direct_{key}_fastmath{int(config.numba__fastmath)}"
            graph = compile_source(inner.__source__, inner.__name__, dict(inner.__globals__), key)
            with safe_caches():
                return numba_njit(graph, final_function=True, no_cfunc_wrapper=True, cache=True)

    return Mode(DirectNumbaLinker(), get_mode("NUMBA").provided_optimizer)


def listen_to_numba(begin: Callable[[Any], None], end: Callable[[], None]) -> None:
    """Call begin(dispatcher) and end() around everything that Numba compiles, also around parts of other functions.

    Numba holds its lock from begin to end, so that other threads compile nothing in between, and calls end() also where
    a compilation raises.
    """

    class Listener(find_private("Listener")):
        def on_start(self, event):
            begin(event.data.get("dispatcher"))

        def on_end(self, event):
            end()

    # For the life of the process: `install_listener` gives a context, which ends when nothing refers to it.
    find_private("register")("numba:compile", Listener())


def is_compiling(dispatcher: Any) -> bool:
    """Whether Numba is compiling a function."""
    return bool(getattr(dispatcher, "is_compiling", True))


def shape_errors(*, in_short: bool) -> None:
    """Let what is compiled from now on name the shapes in errors of assignments to slices, or not.

    The text with the shapes takes two to five seconds to compile for each number of dimensions. The error is a
    ValueError in either case. Numba looks the function up when it compiles an assignment, and holds its lock while it
    compiles one of our functions: what others compile before, after or in other threads names the shapes. Functions
    that ours call, Numba's own and a user's kernel, do not. A Numba without this function is left as it is.
    """
    with suppress(IncompatibleVersion):
        whole, short = _shape_errors()
        module = importlib.import_module(PRIVATE_NAMES["raise_with_shape_context"].module)
        vars(module)["raise_with_shape_context"] = short if in_short else whole


@functools.cache
def _shape_errors() -> tuple[Any, Any]:
    """Numba's `raise_with_shape_context`, and a function that compiled code calls in its place."""
    whole = find_private("raise_with_shape_context")

    def raise_different_shapes(source, target):
        raise NotImplementedError  # Numba takes the function below

    @importlib.import_module("numba.extending").overload(raise_different_shapes)
    def raise_in_short(source, target):
        def impl(source, target):
            raise ValueError("cannot assign slice from input of different size")

        return impl

    return whole, raise_different_shapes


# Files of Numba and PyTensor


def replace_function_cache(make: Callable[[Callable], Any]) -> None:
    """Let Numba call `make` for the cache of each function that is compiled with `cache=True`."""
    dispatcher = importlib.import_module("numba.core.dispatcher")
    if not hasattr(dispatcher, "FunctionCache"):
        raise _incompatible("FunctionCache", "no FunctionCache in numba.core.dispatcher")
    vars(dispatcher)["FunctionCache"] = make


def replace_base_compiledir(directory: Path) -> None:
    """Let PyTensor write to another directory; its setting can be changed only before PyTensor is imported."""
    from pytensor.configdefaults import config

    vars(type(config))["base_compiledir"].val = directory


# Locks


def numba_compiler_lock() -> Any:
    """Return the lock that Numba holds while it compiles, or None if Numba is not loaded or has no such lock."""
    module = sys.modules.get("numba.core.compiler_lock")
    return getattr(getattr(module, "global_compiler_lock", None), "_lock", None)


def renew_lock(lock: Any) -> None:
    """Free an RLock in the child of a fork, unless its thread holds it: the threads of the parent are not there."""
    if not lock._is_owned():
        lock._at_fork_reinit()


# PyTensor on JAX


def jax_function(graph: FunctionGraph) -> Callable:
    """Return the JAX function of a `FunctionGraph`."""
    return find_private("jax_funcify")(graph)


def register_jax(*op_types: type) -> Callable:
    """Decorate the function of (op, node, **kwargs) that converts symsvm's Ops to a JAX function."""

    def register(convert):
        for op_type in op_types:
            find_private("jax_funcify").register(op_type)(convert)
        return convert

    return register


def override_jax(op_type: type) -> Callable:
    """Decorate the function of (op, node, stock) that converts an Op of PyTensor to a JAX function.

    It applies only to the graphs that symsvm compiles; stock() is PyTensor's conversion.
    """

    def register(convert):
        _override(find_private("jax_funcify"), op_type, convert)
        return convert

    return register


@functools.cache
def jax_mode() -> Mode:
    """Return PyTensor's mode JAX, with the conversions of `override_jax`."""
    from pytensor.compile.mode import Mode, get_mode

    class OwnJAXLinker(find_private("JAXLinker")):
        def fgraph_convert(self, fgraph, *args, **kwargs):
            with converting_own_graph():
                return super().fgraph_convert(fgraph, *args, **kwargs)

    return Mode(OwnJAXLinker(), get_mode("JAX").provided_optimizer)


def new_array(context: Any, builder: Any, kind: Any, shape: list[Any], align: int) -> Any:
    """Return the value of an array without entries in compiled code, which begins at a multiple of `align` bytes."""
    array = context.make_array(kind)(context, builder)
    itemsize = shape[0].type(kind.dtype.bitwidth // 8)
    strides = [itemsize]
    for n in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], n))
    memory = context.nrt.meminfo_alloc_aligned(builder, size=builder.mul(shape[0], strides[0]), align=align)
    data = builder.bitcast(context.nrt.meminfo_data(builder, memory), array.data.type)
    find_private("populate_array")(array, data, shape, strides, itemsize, memory)
    return array._getvalue()


# PyTensor's graphs


def subscripts(node: Apply) -> Any:
    """Return the indices of a node x[...] or set/inc(x[...], y): integers, slices and variables."""
    from pytensor.tensor.subtensor import Subtensor

    arguments = node.inputs[1:] if isinstance(node.op, Subtensor) else node.inputs[2:]
    return find_private("indices_from_subtensor")(arguments, node.op.idx_list)


# uvicorn


def http_protocol() -> Any:
    """Return the class of uvicorn's HTTP/1.1 connections, after a check of all that symsvm.serve uses of it."""
    connection, cycle = find_private("HttpToolsProtocol"), find_private("RequestResponseCycle")
    for name in UVICORN_METHODS:
        if not callable(getattr(connection, name, None)):
            raise _incompatible("HttpToolsProtocol", f"no method {name} of HttpToolsProtocol")
    for owner, cls, names in (
        ("HttpToolsProtocol", connection, UVICORN_CONNECTION),
        ("RequestResponseCycle", cycle, UVICORN_CYCLE),
    ):
        for name in names:
            if name not in cls.__init__.__code__.co_names:  # the attributes that it sets
                raise _incompatible(owner, f"no attribute {name} of {owner}")
    return connection
