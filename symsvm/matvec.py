"""kernel_matvec: sum_j K(x_i, z_j) q_j as a graph, for any kernel, without the matrix of pairs."""

import pytensor.tensor as pt
from pytensor import sparse
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Mul, Sqr
from pytensor.scan import map as scan_map
from pytensor.tensor.math import Sum

from symsvm.graphs import is_elemwise
from symsvm.kernels import Kernel
from symsvm.ops.form import Form, factor, uncentred
from symsvm.ops.kernel_ops import KernelMatvec
from symsvm.ops.scalar_function import NotElementwise
from symsvm.rewrites import lift
from symsvm.validation import as_float

__all__ = ["form_of", "kernel_matvec"]


def kernel_matvec(kernel, X, Z, q):
    """The graph of sum_j K(x_i, z_j) q_j, (m,), or (m, p) for several right-hand sides q (n, p).

    It never holds more than a tile of K, and neither do its gradients with respect to q, X, Z and the hyper-parameters
    of the kernel. A kernel that is a function of sums over features (inner products, distances) becomes a
    `KernelMatvec`; any other is computed a row at a time, in a loop. X and Z may be sparse CSR matrices (Numba only,
    without gradients, kernels of inner products and squared distances).

    >>> from symsvm.kernels import RBF
    >>> X = pt.constant([[0.0], [1.0]])
    >>> kernel_matvec(RBF(sigma=1.0), X, X, pt.constant([1.0, 0.0])).eval(mode="FAST_COMPILE").round(4).tolist()
    [1.0, 0.6065]
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a symsvm kernel, such as RBF(sigma=1.0), got {kernel!r}.")
    X, Z = (_points(v) for v in (X, Z))
    q = as_float(q)
    if q.ndim not in (1, 2):
        raise ValueError(f"q must be a vector or a matrix of right-hand sides, got {q.ndim} dimensions.")
    if _is_sparse(X) or _is_sparse(Z):
        return _sparse_matvec(kernel, X, Z, q)
    try:
        return KernelMatvec.of(form_of(kernel, X, Z), q)
    except NotElementwise:
        # By its name the passes know that this loop is to stay.
        return scan_map(
            lambda x, Z, q: pt.dot(kernel(x[None, :], Z)[0], q),
            sequences=[X],
            non_sequences=[Z, q],
            return_updates=False,
            name="rows",
        )


def form_of(kernel, X, Z, *, centred=True):
    """The `Form` of the matrix K(x_i, z_j), or `NotElementwise`."""
    A, B = (pt.tensor(name, dtype=X.dtype, shape=(None, None)) for name in "AB")  # shapes must not look like vectors
    (K,) = lift([kernel(A, B)])
    form = factor(K if centred else uncentred(K))
    return form if X is A else _replace(form, {A: X, B: Z})


def _replace(form, swaps):
    """The form with other inputs."""
    parts = [v for c in form.channels for v in (c.A, c.B, *c.weights)]
    parts += [*form.rows, *form.columns, *form.numbers]
    parts = iter(clone_replace(parts, swaps, rebuild_strict=False))
    channels = tuple(
        type(c)(c.h, next(parts), next(parts), tuple(next(parts) for _ in c.weights)) for c in form.channels
    )
    groups = [tuple(next(parts) for _ in group) for group in (form.rows, form.columns, form.numbers)]
    return Form(form.epilogue, channels, *groups)


def _is_sparse(X):
    return isinstance(getattr(X, "type", None), sparse.SparseTensorType)


def _points(X):
    if _is_sparse(X):
        if X.type.format != "csr":
            raise TypeError(f"sparse points must be in CSR format, one point a row, got {X.type.format}.")
        return X
    if hasattr(X, "tocsr"):
        return sparse.as_sparse_variable(X.tocsr())
    X = as_float(X)
    if X.ndim != 2:
        raise ValueError(f"points must form a matrix (m, d), got {X.ndim} dimension(s).")
    return X


def _sparse_matvec(kernel, X, Z, q):
    """KernelMatvec with points that are stored sparsely, one side or both."""
    dtype = X.dtype
    A, B = (pt.tensor(name, dtype=dtype, shape=(None, None)) for name in "AB")
    (K,) = lift([kernel(A, B)])
    sides = {A: X, B: Z}
    hint = f"{kernel!r} cannot take sparse points, only kernels of inner products and squared distances can: "
    try:
        form = factor(uncentred(K))
    except NotElementwise as error:
        raise TypeError(f"{hint}{error}.") from None
    kinds, data = [], []
    for channel in form.channels:
        if channel.A is not A or channel.B is not B:
            raise TypeError(f"{hint}it transforms the points first.")
        kinds.append(tuple("csr" if _is_sparse(side) else "dense" for side in (X, Z)))
        for side in (X, Z):
            data += sparse.csm_properties(side)[:3] if _is_sparse(side) else [side]
        data += [pt.as_tensor((X if _is_sparse(X) else Z).shape[1]).astype("int64"), *channel.weights]
    vectors = [_row_sums(v, sides, hint) for v in (*form.rows, *form.columns)]
    hs = [channel.h for channel in form.channels]
    op = KernelMatvec(form.epilogue, hs, len(form.rows), len(form.columns), len(form.numbers), kinds)
    return op(*data, *vectors, *form.numbers, q)


def _row_sums(vector, sides, hint):
    """sum_k f(x_ik) of sparse points, with f(0) = 0; of dense ones any graph."""
    point = next(v for v in sides if v in set(ancestors([vector])))
    X = sides[point]
    if not _is_sparse(X):
        return clone_replace([vector], {point: X}, rebuild_strict=False)[0]
    node = vector.owner
    if node is not None and isinstance(node.op, Sum) and node.op.axis == (1,):
        (term,) = node.inputs
        x, *structure = sparse.csm_properties(X)
        squared = is_elemwise(term, Sqr, Mul) and set(term.owner.inputs) == {point} and len(term.owner.inputs) <= 2
        if term is point or squared:
            return sparse.sp_sum(sparse.CSR(x**2 if squared else x, *structure), axis=1)
    raise TypeError(f"{hint}it needs {vector} of each point.")
