"""The parts of the generated loops: vector math, scalar functions, and the forms of kernel matrices."""

import math
import re
import textwrap

import numba
import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
import scipy.sparse
from problems import KERNELS, PAIRS
from pytensor import sparse
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import Elemwise

from symsvm import RBF, Precomputed, pair_kernel, sum_over
from symsvm.compiler.functions import function, resolve_mode, value_and_grad
from symsvm.compiler.lifting import lift, tile
from symsvm.compiler.matvec import kernel_form, kernel_matvec
from symsvm.compiler.ops import KernelGram, KernelMatvec, NotElementwise, ScalarFunction, factor
from symsvm.compiler.ops import scalar_function as tables
from symsvm.compiler.ops.squared_distances import CANCELLATION, SquaredDistances, squared_distances
from symsvm.compiler.ops.tiles import loop_globals
from symsvm.compiler.ops.vector_math import FLOATS
from symsvm.graphs.dtypes import retype
from symsvm.graphs.structure import leaves, signature
from symsvm.objectives import CSVC

AS_WRITTEN = Mode(linker="py", optimizer=None)
PLAIN = get_mode("FAST_COMPILE").excluding("symsvm")
DTYPES = ("float32", "float64")
RNG = np.random.default_rng(0)
FORMS = {name: kernel for name, (kernel, _) in KERNELS.items()} | PAIRS
A, B, q = pt.dmatrix("A"), pt.dmatrix("B"), pt.dvector("q")
POINTS, OTHERS, VECTOR = RNG.uniform(0.1, 1, (7, 3)), RNG.uniform(0.1, 1, (5, 3)), RNG.normal(size=5)

# Functions of one and of two numbers that have no branch


def over_arrays(f, n):
    """Return a function of n numbers, compiled as a loop over arrays."""
    if n == 1:

        def loop(x, out):
            for i in range(len(x)):
                out[i] = f(x[i])
    else:

        def loop(x, y, out):
            for i in range(len(x)):
                out[i] = f(x[i], y[i])

    compiled = numba.njit(loop)

    def call(*arrays):
        out = np.empty_like(arrays[0])
        compiled(*arrays, out)
        return out

    return call


def units(value, exact):
    """Return the error in units in the last place of the exact value."""
    last = np.spacing(np.maximum(abs(exact).astype(value.dtype), np.finfo(value.dtype).tiny))
    return abs(value - exact) / last


def spread(dtype, low, high):
    """Return numbers in an interval, most of them small or near an end."""
    return np.concatenate(
        [
            np.linspace(low, high, 40001),
            np.linspace(-2, 2, 40001).clip(low, high),
            RNG.choice([-1, 1], 40000) * 10.0 ** RNG.uniform(-30, 0, 40000),
            np.linspace(low, low + 1e-3 * (high - low), 10001),
            np.linspace(high - 1e-3 * (high - low), high, 10001),
        ]
    ).astype(dtype)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "exact"), [("exp", np.exp), ("tanh", np.tanh), ("sigmoid", _sigmoid)])
def test_exponentials_to_three_units_in_the_last_place(name, exact, dtype):
    info = np.finfo(dtype)
    f = over_arrays(getattr(FLOATS[dtype], name), 1)
    x = spread(dtype, np.log(float(info.tiny)), np.log(float(info.max)))
    with np.errstate(over="ignore"):
        right = exact(x.astype(np.longdouble))
    normal = (abs(right) >= info.tiny) & (abs(right) <= info.max) | (name == "tanh")
    assert units(f(x[normal]), right[normal]).max() <= 3
    rest = np.array([info.max, -info.max, np.inf, -np.inf, np.nan, 0.0, -0.0], dtype)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(f(rest), exact(rest).astype(dtype))
    # A NaN with other bits stays a NaN; results below the least normal number are kept or become 0.
    whole = {"float32": "uint32", "float64": "uint64"}[dtype]
    noted = (np.full(3, np.nan, dtype).view(whole) + np.array([1, 5, 255], whole)).view(dtype)
    assert np.isnan(f(noted)).all()
    low = np.array([np.log(float(info.tiny)) - 1, 4 * np.log(float(info.tiny))], dtype)
    assert (abs(f(low) - exact(low.astype(np.longdouble))) <= info.tiny).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_to_three_units_in_the_last_place(dtype):
    info = np.finfo(dtype)
    f = over_arrays(FLOATS[dtype].log, 1)
    subnormal = np.arange(1, 2000) * info.smallest_subnormal
    x = np.concatenate([np.exp(spread("float64", np.log(float(info.tiny)), np.log(float(info.max)) - 1e-3)), subnormal])
    x = x.astype(dtype)
    assert units(f(x), np.log(x.astype(np.longdouble))).max() <= 3
    rest = np.array([0.0, -0.0, np.inf, -np.inf, -1.0, np.nan], dtype)
    np.testing.assert_array_equal(f(rest), np.array([-np.inf, -np.inf, np.inf, np.nan, np.nan, np.nan], dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(dtype):
    """To 3 (1 + |y log x|) units in the last place; the special values are C's."""
    info = np.finfo(dtype)
    f = over_arrays(FLOATS[dtype].power, 2)
    x, y = (10.0 ** RNG.uniform(-6, 6, 50000)).astype(dtype), RNG.uniform(-12, 12, 50000).astype(dtype)
    x[:1000], y[:1000] = -x[:1000], RNG.integers(-5, 6, 1000)
    with np.errstate(over="ignore"):
        right = x.astype(np.longdouble) ** y.astype(np.longdouble)
    inside = (abs(right) < info.max / 2) & (abs(right) > 2 * info.tiny)
    x, y, right = x[inside], y[inside], right[inside]
    assert (units(f(x, y), right) <= 3 * (1 + abs(y * np.log(abs(x))))).all()
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1, -1, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0], dtype)
    x, y = (v.ravel() for v in np.meshgrid(special, special, copy=True))
    with np.errstate(all="ignore"):
        right = x**y
    np.testing.assert_allclose(f(x, y), right, rtol=20 * info.eps)
    known = ~np.isnan(right)
    np.testing.assert_array_equal(np.signbit(f(x, y)[known]), np.signbit(right[known]))


# Scalar functions

SCALARS = {type(op): op for module in (ps, ps.math) for op in vars(module).values() if isinstance(op, ps.ScalarOp)}
TABLE = [*tables.INFIX, *tables.TEMPLATES, ps.Pow, ps.ScalarMaximum, ps.ScalarMinimum, ps.Switch]
ODD = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
TRIPLES = np.array(
    [(a, b, c) for a in [*ODD, 0.3] for b in [*ODD, -1.7] for c in [2.0, np.nan]] + [(0.4, 2.5, 1.5)] * 2
)
TRIPLES = np.vstack([TRIPLES, RNG.uniform(-2, 2, (200, 3))])


def expression(kind, inputs):
    """Apply one scalar operation of the table to its inputs."""
    op = SCALARS[kind]
    size = 3 if kind in (ps.Switch, ps.Clip) else op.nin if op.nin > 0 else 2
    args = list(inputs[:size])
    if kind in (ps.AND, ps.OR):
        args = [x > 0 for x in args]
    if kind is ps.Clip:
        args[1:] = [pt.minimum(args[1], args[2]), pt.maximum(args[1], args[2])]
    return Elemwise(op)(*args)


def expressions(inputs):
    """Return all operations of the tables, casts, and operations on booleans and constants."""
    x, y, z = inputs
    finite = pt.clip(x, -3, 3)
    return {
        **{kind.__name__: expression(kind, inputs) for kind in TABLE},
        "switch on a number": pt.switch(y, x, z),
        "cast to an integer": pt.switch(x > -5, finite, 0).astype("int64") * 0.5,
        "cast to a truth value": finite.astype("bool") * x,
        "a constant of a wider type": pt.exp(0.1 * x) + x**0.7,
        "sums of truth values": ((x > 0) + (y > 0)) * ((y > 0) * (z > 0)) * x,
        "a truth value and a number": (x > y) * z,
        "maximum with a constant": pt.maximum(0.25, x) + pt.maximum(y, 0.25),
        "minimum with a constant": pt.minimum(0.25, x) + pt.minimum(y, 0.25),
        **{f"power {n}": x**n for n in (0, 1, 2, 3, 7, 10, 64, 65, -1, -2, 0.7, 1.5, np.inf)},
    }


def compile_all(functions, dtype):
    """Compile one loop that evaluates every function from its source."""
    lines = ["def loop(x, y, z, out):", "    for i in range(len(x)):"]
    for k, f in enumerate(functions):
        source = f.source(["x[i]", "y[i]", "z[i]"], f"out[{k}, i]")
        lines += [textwrap.indent(re.sub(r"\bt(\d+)\b", rf"t{k}_\1", source), "        ")]  # names of its own
    scope = loop_globals(dtype)
    exec("\n".join(lines), scope)
    loop = numba.njit(scope["loop"], error_model="numpy")

    def call(*arrays):
        out = np.empty((len(functions), len(arrays[0])))
        loop(*arrays, out)
        return out

    return call


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_of_the_tables(dtype):
    """PyTensor, NumPy and the compiled source give the same numbers, infinities and NaN."""
    arrays = list(TRIPLES.T.astype(dtype))
    inputs = [pt.scalar(name, dtype=dtype) for name in "xyz"]
    functions = {name: ScalarFunction(inputs, graph) for name, graph in expressions(inputs).items()}
    vectors = [pt.vector(name, dtype=dtype) for name in "xyz"]
    graphs = list(expressions(vectors).values())
    with np.errstate(all="ignore"):
        right = pytensor.function(vectors, graphs, mode=AS_WRITTEN, on_unused_input="ignore")(*arrays)
    compiled = compile_all([f.retyped(dtype) for f in functions.values()], dtype)(*arrays)
    eps = np.finfo(dtype).eps
    for name, exact, by_loop in zip(functions, right, compiled, strict=True):
        by_numpy = np.broadcast_to(functions[name](*arrays), exact.shape)
        assert by_numpy.dtype == exact.dtype, name
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(by_numpy, exact, rtol=64 * eps, err_msg=name)
            np.testing.assert_allclose(by_loop.astype(exact.dtype), exact, 64 * eps, 4 * eps, err_msg=name)


@pytest.mark.parametrize(
    "kind", [kind for kind in TABLE if kind not in (ps.Floor, ps.EQ, ps.NEQ)], ids=lambda k: k.__name__
)
def test_derivatives_are_scalar_functions(kind):
    inputs = pt.dscalars("x", "y", "z")
    f = ScalarFunction(inputs, expression(kind, inputs))
    if f.dtype == "bool":
        return
    point, step = np.array([0.37, 0.61, 0.83]), 1e-6
    for i in range(3):
        by_i = f.grad(i)
        ends = [f(*(point + sign * step * np.eye(3)[i])) for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * step)
        if by_i is None:
            assert slope == 0
        else:
            assert float(by_i(*point)) == pytest.approx(slope, rel=1e-6, abs=1e-8)
            assert all(g is None or np.isfinite(g(*point)) for g in map(by_i.grad, range(3)))


def test_functions_are_equal_if_their_expressions_are():
    x, y = pt.dscalars("x", "y")
    f = ScalarFunction([x, y], pt.exp(-x) * y)
    u, v = pt.dscalars("u", "v")
    assert f == ScalarFunction([u, v], pt.exp(-u) * v)
    assert hash(f) == hash(ScalarFunction([u, v], pt.exp(-u) * v))
    different = [
        ScalarFunction([v, u], pt.exp(-u) * v),
        ScalarFunction([u, v, x], pt.exp(-u) * v),
        ScalarFunction([u, v], pt.exp(-u) * v * 2),
        f.retyped("float32"),
    ]
    assert len({f, *different}) == 5
    assert f.source(["a[i]", "b"], "out[i]") == "t0 = -a[i]\nt1 = exp(t0)\nout[i] = t1 * b"
    assert ScalarFunction([x, y], y).source(["a", "b"], "c") == "c = b"
    assert f.retyped("float32")(np.float32(0.5), np.float32(2)).dtype == "float32"


def test_permuted_and_times():
    x, y, z = pt.dscalars("x", "y", "z")
    f = ScalarFunction([x, y, z], x - y * z)
    assert f(5.0, 2.0, 3.0) == -1
    assert f.permuted([2, 0, 1])(3.0, 5.0, 2.0) == -1
    assert f.times()(5.0, 2.0, 3.0, 4.0) == -4
    assert ScalarFunction([x], x).is_identity
    assert ScalarFunction([x, y], y * x).is_product
    assert not any(ScalarFunction([x, y], graph).is_product for graph in (x * x, x * y * 2, x + y))


def test_an_operation_without_an_inner_loop_is_named():
    x, y = pt.dscalars("x", "y")
    with pytest.raises(NotElementwise, match="mod has no inner loop"):
        ScalarFunction([x, y], x % y)
    i = pt.lscalar("i")
    with pytest.raises(NotElementwise, match="power of integers"):
        ScalarFunction([i], i**i)


# Forms

CHANNELS = {  # for each channel whether it is a product of matrices, a squared distance, or another sum over features
    **dict.fromkeys(FORMS, ("product",)),
    **dict.fromkeys(["rbf", "widths", "custom", "rational quadratic", "rbf by dot"], ("distance",)),
    **dict.fromkeys(
        ["laplacian", "chi-squared", "weighted rbf", "weighted laplacian", "intersection"],
        ("other",),
    ),
    "composed": ("distance", "product", "other"),
    "shared product": ("distance", "product"),
}


@pytest.mark.parametrize("name", FORMS)
def test_kernel_form(name):
    form = kernel_form(FORMS[name], A, B)
    kinds = [
        "product" if c.h.is_product else "distance" if c.h.is_squared_difference else "other" for c in form.channels
    ]
    assert tuple(kinds) == CHANNELS[name]
    has_weights = "weighted" in name or "widths" in name
    assert [len(channel.weights) for channel in form.channels] == [int(has_weights)] * len(form.channels)
    assert len(form.epilogue.inputs) == sum(map(len, (form.channels, form.rows, form.columns, form.numbers)))
    (again,) = tile([pt.dot(lift([FORMS[name](A, B)])[0], q)])
    ops = [v.owner.op for v in ancestors([again]) if v.owner is not None and isinstance(v.owner.op, KernelMatvec)]
    assert [len(op.hs) for op in ops] == [len(form.channels)] * (name != "linear")  # a plain product


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["FAST_COMPILE", "JAX"])
@pytest.mark.parametrize("name", FORMS)
def test_the_form_has_the_value_of_the_kernel(name, mode, dtype):
    check_value(FORMS[name], mode, dtype)


# A form takes ten seconds to compile, so only two are: one with all kinds of inputs, and one with weights. Every fit of
# the decomposition solver uses loops in float32.
@pytest.mark.parametrize(
    ("name", "ops", "dtype"),
    [
        ("shared product", [KernelMatvec], "float64"),
        pytest.param("rbf", [KernelMatvec], "float32", marks=pytest.mark.slow),
        ("weighted laplacian", [KernelMatvec], "float64"),
    ],
)
def test_the_form_has_the_value_of_the_kernel_in_compiled_loops(name, ops, dtype):
    check_value(FORMS[name], "NUMBA", dtype, ops)


def check_value(kernel, mode, dtype, ops=(KernelGram, KernelMatvec)):
    """KernelGram and KernelMatvec of the form against the plain graph in float64."""
    inputs = [pt.tensor(v.name, dtype=dtype, shape=(None,) * v.ndim) for v in (A, B, q)]
    given = [array.astype(dtype) for array in (POINTS, OTHERS, VECTOR)]
    form = kernel_form(kernel, *inputs[:2])
    graphs = [op.of(form, *([inputs[2]] if op is KernelMatvec else [])) for op in ops]
    assert {graph.dtype for graph in graphs} == {dtype}
    values = function(inputs, graphs, mode=mode)(*given)
    left, right, vector = (array.astype("float64") for array in given)
    K = pytensor.function([A, B], kernel(A, B), mode=PLAIN)(left, right)
    bound = 32 * np.finfo(dtype).eps * abs(K).max()
    for op, value in zip(ops, values, strict=True):
        exact, atol = (K, bound) if op is KernelGram else (K @ vector, bound * abs(vector).sum())
        np.testing.assert_allclose(value, exact, rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (pair_kernel(lambda x, z: pt.exp(-abs(x - z).max())), "Max.* is no sum over features"),
        (pair_kernel(lambda x, z, M: pt.dot(x - z, pt.dot(M, x - z)), M=np.eye(3)), "is no sum over features"),
        (pair_kernel(lambda x, z: (1 + x * z).prod()), "Prod.* is no sum over features"),
        (pair_kernel(lambda x, z: (x * z).sum() % 1), "mod has no inner loop"),
        (pair_kernel(lambda x, z: x[0] * z[0]), "no sum over features is in it"),
        (pair_kernel(lambda x, z: x.sum()), "Alloc is no sum over features"),
        (Precomputed(np.eye(3)), "is no sum over features"),
    ],
)
def test_a_kernel_without_a_form_has_a_reason(kernel, reason):
    with pytest.raises(NotElementwise, match=reason):
        kernel_form(kernel, A, B)


def test_matrices_without_a_form():
    F = pt.fmatrix("F")
    with pytest.raises(NotElementwise, match="it mixes float64 with float32"):
        factor(pt.exp(pt.dot(F, F.T).astype("float64")))
    with pytest.raises(NotElementwise, match="it does not vary along both axes"):
        factor(pt.exp(pt.dcol("column")))
    with pytest.raises(NotElementwise, match="A is no sum over features"):
        factor(pt.exp(A))


# Squared distances

FAR = {
    "ordinary": lambda points: points,
    "far from the origin": lambda points: points + 1e6,
    "nearly equal": lambda points: np.vstack([points, points + 1e-8, points[:1]]),
    "one outlier": lambda points: np.vstack([points, np.full_like(points[:1], 1e8)]),
    "two clusters": lambda points: np.vstack([points, points[:30] + 1e7]),
    "beyond the range of squares": lambda points: np.vstack([points, np.full_like(points[:1], 1e18)]),
}


WAYS = [("dense", mode, dtype) for mode in ("FAST_COMPILE", "NUMBA", "JAX") for dtype in DTYPES]
# PyTensor has no sparse matrices on JAX, and on Numba those of one floating type only.
WAYS += [("CSR", "FAST_COMPILE", "float32"), ("CSR", "FAST_COMPILE", "float64"), ("CSR", "NUMBA", "float64")]


WEIGHTED = [(*way, True) for way in WAYS if way[2] == "float64"]


@pytest.mark.parametrize(("storage", "mode", "dtype", "weighted"), [*((*way, False) for way in WAYS), *WEIGHTED])
def test_squared_distances_keep_their_digits(storage, mode, dtype, weighted):
    """The relative error is at most (d + 4) eps / CANCELLATION, wherever the points are; d + 6 with widths."""
    d, sigma = 5, np.array([0.3, 7.0, 1.1, 0.9, 3.3]) if weighted else np.ones(1)
    squared = pair_kernel(lambda x, z: ((x - z) ** 2).sum())
    if weighted:
        widths = pytensor.shared(sigma)
        squared = pair_kernel(lambda x, z: (((x - z) / widths) ** 2).sum())
    S = sparse.csr_matrix("S", dtype=dtype) if storage == "CSR" else pt.tensor("S", dtype=dtype, shape=(None, d))
    right = pt.tensor("right", dtype=dtype, shape=(None, None))
    f = function([S, right], kernel_matvec(squared, S, S, right), mode=resolve_mode(mode))
    for name, move in FAR.items():
        X = move(RNG.normal(size=(60, d))).astype(dtype)
        D = np.asarray(f(scipy.sparse.csr_matrix(X) if storage == "CSR" else X, np.eye(len(X), dtype=dtype)))
        E = X.astype(np.longdouble)
        exact = (((E[:, None] - E[None]) / sigma.astype(np.longdouble)) ** 2).sum(-1)
        assert (
            abs(D - exact) <= (d + 6 if weighted else d + 4) * np.finfo(dtype).eps / CANCELLATION[dtype] * exact
        ).all(), name


@pytest.mark.parametrize("name", FAR)
def test_squared_distances_of_a_row_do_not_depend_on_other_rows(name):
    X = FAR[name](RNG.normal(size=(60, 5)))
    D = squared_distances(X, X, by_rows=True)
    for rows in ([7], [7, 3], [50, 1, 2, 7, 9, 11, 13]):
        np.testing.assert_array_equal(squared_distances(X[rows], X, by_rows=True), D[rows])


def test_the_gradient_of_squared_distances():
    A, B = pt.dmatrices("A", "B")
    G = RNG.normal(size=(6, 4))
    values = RNG.normal(size=(6, 3)) + 100, RNG.normal(size=(4, 3)) + 100
    ours = pytensor.grad((SquaredDistances()(A, B) * G).sum(), [A, B])
    theirs = pytensor.grad((((A[:, None] - B[None]) ** 2).sum(axis=2) * G).sum(), [A, B])
    for mine, reference in zip(ours, theirs, strict=True):
        f = pytensor.function([A, B], [mine, reference], mode="FAST_COMPILE", on_unused_input="ignore")
        np.testing.assert_allclose(*f(*values), rtol=1e-10, atol=1e-10)


# Graphs


def test_signatures_distinguish_computations():
    x, y = pt.dvectors("x", "y")
    same = [
        (lambda v: pt.exp(v).sum() * 2.5),
        (lambda v: sum_over(lambda a: a * 2.0 + pt.sin(a), v)),
        (lambda v: v[1:] * np.array([1.0, 2.0])),
        (lambda v: pt.constant(np.nan) * v),
    ]
    for build in same:
        assert signature([x], [build(x)]) == signature([y], [build(y)])
        assert hash(signature([x], [build(x)])) == hash(signature([y], [build(y)]))
    every = [
        x * 2.0,
        x * 3.0,
        x * np.array([[2.0]]),
        x * np.float64(2.0),
        x + 2.0,
        x[1:],
        x[2:],
        x.sum(),
        sum_over(lambda a: a * 2.0, x),
        sum_over(lambda a: a * 3.0, x),
        x * y,
    ]
    assert len({signature([x, y], [graph]) for graph in every}) == len(every)
    assert signature([x, y], [x - y]) != signature([y, x], [x - y])
    assert signature([x], [x * y]) != signature(
        [x], [x * pt.dvector("y")]
    )  # a leaf that is not an input is compared by identity


def test_signatures_of_sparse_constants_are_their_entries():
    dense = np.diag([1.5, 2.0, 3.0])
    matrices = [scipy.sparse.csr_matrix(M) for M in (dense, 2 * dense, dense[::-1].copy())]
    graphs = [kernel_matvec(RBF(1.0), M, np.eye(3), q) for M in matrices]
    assert len({signature([q], [graph]) for graph in graphs}) == 3
    one = scipy.sparse.csr_matrix(np.diag([1.5, 0.0, 0.0]))
    assert leaves([kernel_matvec(RBF(1.0), one, np.eye(3), q)])[0] == [q]
    first, second = (function([q], graph, mode="FAST_COMPILE")(np.ones(3)) for graph in graphs[:2])
    assert abs(first - second).max() > 0.1


def test_leaves():
    x, s = pt.dvector("x"), pytensor.shared(1.0, name="s")
    graph = pt.exp(-0.7 * x) ** 1.5 + s * 0.5 + 2.0 * x - 0.1 * pt.constant([1.0, 2.0]).sum() + np.inf
    variables, numbers = leaves([graph, pt.constant(0.3)])
    assert set(variables) == {x, s}
    assert sorted(float(v.data.item()) for v in numbers) == [-0.7, 0.1, 0.3]


def floats(graphs):
    """Return the floating types of all variables in the graphs."""
    return {v.dtype for v in ancestors(graphs) if getattr(v, "dtype", "").startswith("float")}


@pytest.mark.parametrize("name", ["rbf", "composed"])
def test_retype_changes_every_floating_type(name):
    lam, y, X = pt.dvector("lam"), pt.dvector("y"), pt.dmatrix("X")
    objective = CSVC(lam, X, y, 1.5, KERNELS[name][0])
    plain = [*value_and_grad(objective.value, lam), *lift(objective.bounds)]
    for graphs in (plain, tile(plain)):
        assert floats(graphs) == {"float64"}
        narrow, inputs = retype(graphs, "float32")
        assert floats(narrow) == {"float32"}
        assert {inputs[v].dtype for v in (lam, y, X)} == {"float32"}
        wide, _ = retype(narrow, "float64", {inputs[v]: v for v in inputs})
        assert floats(wide) == {"float64"}
        before, after = function([lam, X, y], [graphs[1], wide[1]], mode="FAST_COMPILE")(
            np.ones(7), POINTS, -np.ones(7)
        )
        np.testing.assert_allclose(after, before, rtol=1e-7)  # constants were rounded on the way


def test_retype_of_single_variables():
    x, i = pt.dscalar("x"), pt.lscalar("i")
    (graph, own), inputs = retype([x * i + math.pi, i], "float32")
    assert (graph.dtype, own) == ("float32", i)
    assert list(inputs) == [x]
    y = pt.fscalar("y")
    (given,), inputs = retype([x + 1.0], "float32", {x: y})
    assert y in set(ancestors([given]))
    assert not inputs
