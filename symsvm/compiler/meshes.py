"""Graphs over a `jax.sharding.Mesh`: what is spread over its devices, and the mode that compiles it."""

# pyright: reportAttributeAccessIssue=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot

from symsvm._lib.compat import jax_mode
from symsvm.compiler.lifting import lower
from symsvm.compiler.ops.kernel_form import factor
from symsvm.compiler.ops.kernel_ops import KernelFeatures, KernelGram, KernelMatvec
from symsvm.compiler.ops.mesh_ops import MeshGram, MeshPairs, MeshProduct
from symsvm.compiler.ops.scalar_function import NotElementwise
from symsvm.graphs.structure import select_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from symsvm._lib.types import Graph

__all__ = ["MeshMode", "check_mesh", "is_mesh_mode", "mesh_mode", "replicate", "spread"]


def check_mesh(mesh: Any) -> Any:
    """Return a mesh with devices, or raise.

    Parameters
    ----------
    mesh : jax.sharding.Mesh
        The mesh.

    Returns
    -------
    jax.sharding.Mesh
        The mesh.
    """
    import jax

    if not hasattr(jax, "shard_map"):
        raise ImportError(f"mesh needs jax 0.8 or newer, which has jax.shard_map, and this is jax {jax.__version__}.")
    if not isinstance(mesh, jax.sharding.Mesh):
        raise TypeError(f"mesh must be a jax.sharding.Mesh, such as jax.make_mesh((4,), ('rows',)), got {mesh!r}.")
    if mesh.empty:
        raise ValueError("mesh must have at least one device and one axis, got an empty mesh.")
    return mesh


@functools.cache
def mesh_mode(mesh: Any) -> MeshMode:
    """Return the mode that compiles graphs for a mesh; equal meshes share what is compiled.

    Parameters
    ----------
    mesh : jax.sharding.Mesh
        The mesh.

    Returns
    -------
    MeshMode
        The mode.
    """
    return MeshMode(check_mesh(mesh))


class MeshMode(Mode):
    """PyTensor's mode JAX on all devices of a mesh.

    Parameters
    ----------
    mesh : jax.sharding.Mesh
        The mesh; the rows of kernel matrices are spread along all of its axes.

    Attributes
    ----------
    mesh
        The mesh.
    """

    def __init__(self, mesh: Any) -> None:
        linker = _linker_class()()
        linker.mesh = self.mesh = mesh
        super().__init__(linker, jax_mode().provided_optimizer)

    def __str__(self) -> str:
        axes = " x ".join(f"{size} {name}" for name, size in self.mesh.shape.items())
        return f"JAX on a mesh of {axes}"

    @property
    def n_processes(self) -> int:
        """How many processes the devices of the mesh belong to."""
        return len({device.process_index for device in self.mesh.devices.flat})


def is_mesh_mode(mode: Mode) -> TypeGuard[MeshMode]:
    """Return whether a mode compiles for a mesh of devices.

    Parameters
    ----------
    mode : pytensor Mode
        The mode.

    Returns
    -------
    bool
        True for a `MeshMode`.
    """
    return isinstance(mode, MeshMode)


def replicate(values: Sequence[Any], mesh: Any) -> list:
    """Return arrays as JAX arrays that each device of a mesh holds whole.

    Parameters
    ----------
    values : sequence of arrays
        The arrays; those that are on the devices of the mesh stay as they are.
    mesh : jax.sharding.Mesh
        The mesh.

    Returns
    -------
    list of jax.Array
        The arrays on the mesh.
    """
    import jax

    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    devices = set(mesh.devices.flat)

    def put(value):
        if isinstance(value, jax.Array) and value.sharding.device_set == devices:
            return value
        array = np.asarray(value)  # `device_put` would compare the values of all processes
        return jax.make_array_from_callback(array.shape, whole, lambda index: array[index])

    return [put(value) for value in values]


@functools.cache
def _linker_class() -> type:
    """The class of linkers that compile one program, which each device runs on its rows."""

    class MeshLinker(type(jax_mode().linker)):
        mesh: Any = None

        def fgraph_convert(self, fgraph, *args, **kwargs):
            self.graph = fgraph
            return super().fgraph_convert(fgraph, *args, **kwargs)

        def jit_compile(self, function):
            return _compile(self.mesh, self.graph, function)

    return MeshLinker


def _compile(mesh: Any, graph: FunctionGraph, function: Callable) -> Callable:
    """Compile the JAX function of a graph."""
    import jax

    axes, whole = tuple(mesh.axis_names), jax.sharding.PartitionSpec()
    by_rows = jax.sharding.PartitionSpec(axes)
    inputs = tuple(by_rows if _is_rows(graph, v) else whole for v in graph.inputs)
    outputs = tuple(by_rows if _owner_is(v, MeshGram) else whole for v in graph.outputs)
    # `check_vma` cannot know that what is gathered is the same on each device.
    program = jax.shard_map(function, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)
    compiled = jax.jit(program)

    def run(*values):
        return compiled(*replicate(values, mesh))

    run.lower = lambda *values: compiled.lower(*replicate(values, mesh))
    return run


def _is_rows(graph: FunctionGraph, variable: Variable) -> bool:
    """Whether an input stands for a `MeshGram`."""
    clients: Any = graph.clients[variable]
    return any(isinstance(node.op, MeshProduct) and k == 0 for node, k in clients)


def _owner_is(variable: Any, *ops: type) -> bool:
    return variable.owner is not None and isinstance(variable.owner.op, ops)


def spread(
    graphs: Sequence[Variable], mesh: Any, changing: Collection[Variable] | None = None, *, must: bool = False
) -> list[Graph]:
    """Return differentiated graphs with each product with a kernel matrix spread by rows over a mesh.

    ::

        K q -> MeshProduct(MeshGram(A, B, ...), q)      if K does not depend on `changing`: it is stored, by rows
               MeshPairs(A, B, ..., q)                  else, in tiles

    Parameters
    ----------
    graphs : sequence of graphs
        The graphs.
    mesh : jax.sharding.Mesh
        The mesh.
    changing : collection of graphs, optional
        The variables that change between evaluations; None stores no kernel matrix.
    must : bool
        Whether to raise if there is no such product.

    Returns
    -------
    list of graphs
        The graphs with Ops over the mesh.
    """
    graph = FunctionGraph(outputs=lower(graphs), clone=True, copy_inputs=False)
    axes, n_devices = tuple(mesh.axis_names), mesh.devices.size
    for node in graph.toposort():
        (old, *others), product = node.outputs, _product(node)
        if product is None or others:
            continue
        matvec, finish = product
        (*data, q), pairs = matvec.owner.inputs, matvec.owner.op
        if changing is not None and isinstance(pairs, KernelMatvec) and set(changing).isdisjoint(ancestors(data)):
            gram = KernelGram(pairs.epilogue, pairs.hs, pairs.n_rows, pairs.n_columns, pairs.n_numbers, pairs.storage)
            result = MeshProduct(axes, n_devices)(MeshGram(axes, n_devices, gram)(*data), q, data[0])
        else:
            result = MeshPairs(axes, n_devices, pairs)(*data, q)
        result = old.type.filter_variable(finish(result).astype(old.dtype))
        graph.replace(old, result, reason="spread", import_missing=True)
    if must and not any(isinstance(node.op, (MeshPairs, MeshProduct)) for node in graph.apply_nodes):
        raise ValueError(
            "mesh has nothing to spread: the graph has no product with a kernel matrix, a sum over pairs of rows of "
            "the data. Leave mesh out."
        )
    return lower(graph.outputs)


def _product(node: Any) -> tuple[Any, Callable] | None:
    """Return a product by an Op over pairs, and the function that makes the node's output of it; None for another node.

    K q and q'K are products for every matrix K that has a `KernelForm`.
    """
    if isinstance(node.op, (KernelMatvec, KernelFeatures)):
        return node.outputs[0], lambda v: v
    if not isinstance(node.op, Dot) or any(v.ndim != 2 for v in node.inputs):
        return None
    left, right = node.inputs
    for K, q, is_left in ((left, right, True), (right, left, False)):
        transposed = not is_left
        while _owner_is(K, DimShuffle) and K.owner.op.new_order == (1, 0):
            K, transposed = K.owner.inputs[0], not transposed
        try:
            form = factor(K)
        except NotElementwise:
            continue
        if is_left:
            return KernelMatvec.of(form, q, transposed=transposed), lambda v: v
        return KernelMatvec.of(form, select_axes(q, (1, 0)), transposed=transposed), lambda v: v.T
    return None
