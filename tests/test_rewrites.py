"""Each pass is tested by structure, against the expected graph, and by value, against the graph as written."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from campaigns import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KERNELS, MODES, overlapping
from pytensor.compile.mode import get_mode
from pytensor.graph.basic import equal_computations
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.scan import foldl, reduce, scan
from pytensor.scan.op import Scan
from pytensor.tensor.math import Dot

from symsvm import RBF, Linear, grad, pair_kernel, sum_over
from symsvm.compiler.functions import hoist, value_and_grad
from symsvm.compiler.lifting import lift
from symsvm.compiler.ops import KernelMatvec
from symsvm.compiler.ops.squared_distances import SquaredDistances
from symsvm.compiler.rewrites.quadratic import QuadraticForm, is_symmetric, quadratic_form
from symsvm.objectives import dual
from symsvm.objectives.sums import map_rows

PLAIN = get_mode("FAST_COMPILE").excluding("symsvm")
X, Z = pt.dmatrix("X"), pt.dmatrix("Z")
lam, y = pt.dvector("lam"), pt.dvector("y")
RNG = np.random.default_rng(0)
POINTS, OTHERS = RNG.normal(size=(7, 3)), RNG.normal(size=(5, 3))
WEIGHTS, LABELS = RNG.random(7), RNG.choice([-1.0, 1.0], 7)
VALUES = {X: POINTS, Z: OTHERS, lam: WEIGHTS, y: LABELS}


def evaluate(graphs):
    """Return the values of graphs without the passes of symsvm."""
    inputs = [v for v in VALUES if v in set(ancestors(graphs))]
    return pytensor.function(inputs, graphs, mode=PLAIN)(*(VALUES[v] for v in inputs))


def has(graph, *ops):
    return any(v.owner is not None and isinstance(v.owner.op, ops) for v in ancestors([graph]))


def canonical(graph):
    return rewrite_graph(graph, include=("canonicalize",), clone=True)


def lifted(graph):
    """Return the graph after the passes, and check that its value is the same."""
    (result,) = lift([graph])
    before, after = evaluate([graph, result])
    np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-12)
    return result


def test_reduce_to_sum():
    graph = sum_over(lambda lam_i, x_i: lam_i * pt.tanh(x_i).sum(), lam, X)
    expected = (lam * pt.tanh(X).sum(axis=1)).sum()
    assert equal_computations([canonical(lifted(graph))], [canonical(expected)])


def test_reduce_with_an_initial_value_and_several_terms():
    graph = reduce(
        lambda a, b, total: a + total + a * b,
        sequences=[lam, y],
        outputs_info=[pt.constant(3.0, dtype="float64")],
        return_updates=False,
    )
    assert not has(lifted(graph), Scan)


def test_map_to_batch():
    graph = map_rows(lambda x: pt.exp(x).sum(), X)
    assert equal_computations([canonical(lifted(graph))], [canonical(pt.exp(X).sum(axis=1))])


def test_nested_to_any_depth():
    def inner(x_i, x_j):
        return sum_over(lambda lam_k, x_k: lam_k * (x_i * x_j * x_k).sum(), lam, X)

    graph = sum_over(lambda x_i: sum_over(lambda x_j: pt.sin(inner(x_i, x_j)), X), X)
    assert not has(lifted(graph), Scan)


def test_other_loops_stay_loops():
    start = pt.constant(0.5, dtype="float64")

    def fold(step):
        return foldl(step, sequences=[lam], outputs_info=[start], return_updates=False)

    stays = {
        "a product": fold(lambda a, t: t * (1 + a)),
        "a term of the accumulator": fold(lambda a, t: t + a * pt.sin(t)),
        "twice the accumulator": fold(lambda a, t: t + t + a),
    }
    for name, graph in stays.items():
        assert has(lifted(graph), Scan), name


def test_coupled_states_stay_a_loop():
    one = pt.constant(1.0, dtype="float64")
    first, _ = foldl(lambda a, s, t: [s + t, t + a], sequences=[lam], outputs_info=[one, one], return_updates=False)
    assert has(lifted(first), Scan)


def test_sequences_cut_by_hand_stay_cut():
    graph = sum_over(lambda a, b: a * b, lam[:4], y[1:5])
    assert not has(lifted(graph), Scan)
    (value,) = evaluate([lift([graph])[0]])
    assert value == pytest.approx(WEIGHTS[:4] @ LABELS[1:5])


def test_sequences_of_different_lengths_raise_instead_of_being_cut():
    (graph,) = lift([sum_over(lambda a, b: a * b, lam, y)])
    with pytest.raises(ValueError, match="Input dimension mismatch|Incompatible|shape"):
        pytensor.function([lam, y], graph, mode="FAST_COMPILE")(WEIGHTS, LABELS[:4])


@pytest.mark.parametrize(
    "distance",
    [
        lambda u, v: ((u - v) ** 2).sum(axis=-1),
        lambda u, v: pt.sqr(v - u).sum(axis=-1),
        lambda u, v: ((u - v) * (u - v)).sum(axis=2),
    ],
)
def test_squared_distances(distance):
    for other in (X, Z):
        result = lifted(distance(X[:, None, :], other[None, :, :]))
        assert has(result, SquaredDistances)
        assert max(v.ndim for v in ancestors([result]) if hasattr(v, "ndim")) == 2


def test_squared_distance_of_points_far_from_the_origin():
    """The error does not grow with the distance from the origin; no value is below 0."""
    offset = 1e6
    shifted = POINTS + offset
    exact = ((shifted[:, None] - shifted[None]) ** 2).sum(-1)
    (graph,) = lift([((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=-1)])
    value = pytensor.function([X], graph, mode="FAST_COMPILE")(shifted)
    assert (value >= 0).all()
    np.testing.assert_allclose(value, exact, rtol=1e-11)
    by_products = (shifted**2).sum(1)[:, None] + (shifted**2).sum(1)[None] - 2 * shifted @ shifted.T
    assert np.abs(by_products - exact).max() > 1e-5


def test_points_that_nearly_coincide():
    near = np.vstack([POINTS, POINTS + 1e-9])
    (graph,) = lift([((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=-1)])
    value = pytensor.function([X], graph, mode="FAST_COMPILE")(near)
    bound = 8 * np.finfo(float).eps * ((near - near.mean(0)) ** 2).sum(1).max() * 2
    np.testing.assert_allclose(value, ((near[:, None] - near[None]) ** 2).sum(-1), atol=bound)


def test_sums_of_products_to_dot():
    K = pt.exp(X[:, None, 0] - Z[None, :, 0])
    q = Z[:, 1]
    for graph, expected in [
        ((X[:, None, :] * Z[None, :, :]).sum(axis=2), pt.dot(X, Z.T)),
        ((K * q[None, :]).sum(axis=1), pt.dot(K, q)),
        ((3.0 * lam[:, None] * K * q[None, :]).sum(axis=1), 3.0 * lam * pt.dot(K, q)),
        ((lam[:, None] * K * q[None, :]).sum(), (lam * pt.dot(K, q)).sum()),
    ]:
        result = lifted(graph)
        assert has(result, Dot)
        before, after = evaluate([expected, result])
        np.testing.assert_allclose(after, before)
    assert not has(lifted((K * lam[:, None]).sum(axis=1)), Dot)  # nothing to multiply by


@pytest.mark.parametrize("name", KERNELS)
def test_w_of_every_kernel_becomes_a_quadratic_form(name):
    W = dual.W(lam, X, y, KERNELS[name][0])
    result = lifted(W)
    assert not has(result, Scan)
    assert has(result, QuadraticForm)
    by_passes, as_written = evaluate([grad(W, lam), pytensor.grad(W, lam)])
    np.testing.assert_allclose(by_passes, as_written, rtol=1e-10, atol=1e-12)


def test_the_gradient_shares_the_product_with_the_value():
    """W and grad W hold one K q, and no transpose of K."""
    W = dual.W(lam, X, y, RBF(0.8))
    value, gradient = value_and_grad(W, lam)
    graphs = lift([value, gradient])
    graphs = rewrite_graph(graphs, include=("merge", "canonicalize"), clone=True)
    products = {v.owner for v in ancestors(graphs) if v.owner is not None and isinstance(v.owner.op, Dot)}
    assert [node.outputs[0].type.shape[-1] == 1 for node in products] == [True]  # K q


def test_gradients_by_points_and_hyper_parameters():
    sigma = pt.dscalar("sigma")
    W = dual.W(lam, X, y, RBF(sigma) + 0.3 * Linear())
    values = (WEIGHTS, POINTS, LABELS, 0.8)
    ours = pytensor.function([lam, X, y, sigma], grad(W, [X, sigma, lam]), mode="FAST_COMPILE")(*values)
    theirs = pytensor.function([lam, X, y, sigma], pytensor.grad(W, [X, sigma, lam]), mode=PLAIN)(*values)
    for mine, reference in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, reference, rtol=1e-9, atol=1e-10)


def test_grad_by_an_intermediate_and_by_a_disconnected_variable():
    squared = lam**2
    W = (squared * y).sum()
    (value,) = evaluate([grad(W, squared)])
    np.testing.assert_array_equal(value, LABELS)
    with pytest.raises(pytensor.gradient.DisconnectedInputError):
        grad(W, X)


def test_symmetry_is_proved_not_assumed():
    D = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=-1)
    A = pt.abs(X[:, None, :] - X[None, :, :]).sum(axis=-1)
    G = pt.dot(X, X.T)
    for graph, known in [
        (pt.exp(-D), True),
        (G**3 + A, True),
        (1 / (1 + G) * lam[:, None] * lam[None, :], True),
        (pt.exp(X[:, None, 0] - X[None, :, 0]), False),
        (G * lam[:, None], False),
        (pt.dot(X, Z.T), False),
        (X, False),
    ]:
        assert is_symmetric(canonical(graph)) is known, pytensor.dprint(graph, file="str")


def test_an_asymmetric_pair_expression_keeps_its_own_gradient():
    """sum_ij q_i q_j a(x_i, x_j) with a(x, z) != a(z, x) is no symmetric form."""
    W = sum_over(lambda a, x: a * sum_over(lambda b, z: b * pt.exp((x - 2 * z).sum()), lam, X), lam, X)
    result = lifted(W)
    assert not has(result, QuadraticForm)
    by_passes, as_written = evaluate([grad(W, lam), pytensor.grad(W, lam)])
    np.testing.assert_allclose(by_passes, as_written, rtol=1e-10)


def test_two_different_loops_are_not_equal():
    """sum_i u_i (K v)_i with u and v from two similar loops is no quadratic form."""
    start = pt.constant(0.5, dtype="float64")

    def walk(step):
        return scan(step, sequences=[lam], outputs_info=[start], return_updates=False)

    u, v = walk(lambda a, t: t * (1 + a)), walk(lambda a, t: t * (2 + a))
    assert not has(lifted((u * pt.dot(pt.dot(X, X.T), v)).sum()), QuadraticForm)
    assert has(lifted((u * pt.dot(pt.dot(X, X.T), u)).sum()), QuadraticForm)


@pytest.mark.parametrize("mode", MODES)
def test_quadratic_form_runs_and_differentiates_on_its_own(mode):
    K, q = pt.dmatrix("K"), pt.dvector("q")
    form = quadratic_form(K, q)
    f = pytensor.function([K, q], [form, *pytensor.grad(form, [K, q])], mode=mode)
    S = POINTS @ POINTS.T
    value, by_K, by_q = f(S, WEIGHTS)
    assert float(value) == pytest.approx(WEIGHTS @ S @ WEIGHTS)
    np.testing.assert_allclose(by_K, np.outer(WEIGHTS, WEIGHTS))
    np.testing.assert_allclose(by_q, 2 * S @ WEIGHTS)


def test_modes_include_and_exclude_the_passes():
    graph = sum_over(lambda lam_i, x_i: lam_i * x_i.sum(), lam, X)
    scans = {
        tags: any(isinstance(n.op, Scan) for n in pytensor.function([lam, X], graph, mode=mode).maker.fgraph.toposort())
        for tags, mode in {
            "none": get_mode("FAST_COMPILE"),
            "all": get_mode("FAST_COMPILE").including("symsvm"),
            "one off": get_mode("FAST_COMPILE").including("symsvm").excluding("symsvm_reduce_to_sum"),
        }.items()
    }
    assert scans == {"none": True, "all": False, "one off": True}


def test_large_arrays_are_tiled_or_stay_loops():
    big = pytensor.shared(np.zeros((2000, 2)), name="big", shape=(2000, 2))
    weights = pytensor.shared(np.zeros(2000), name="weights", shape=(2000,))
    W = dual.W(weights, big, weights, RBF(1.0))
    (tiled,) = lift([W], memory=2**24)
    assert has(tiled, KernelMatvec)
    assert not has(tiled, Scan)
    assert not has(lift([W], memory=2**30)[0], KernelMatvec, Scan)
    farthest = pair_kernel(lambda x, z: pt.exp(-abs(x - z).max()))
    assert has(lift([dual.W(weights, big, weights, farthest)], memory=2**24)[0], Scan)


def test_hoist_extracts_what_does_not_vary():
    (W,) = lift([dual.W(lam, X, y, RBF(0.8))])
    constants, inputs, (outer, _) = hoist([W, lam * 2], [lam])
    assert [c.ndim for c in constants] == [2]
    assert X not in set(ancestors([outer]))
    assert len(inputs) == 1


@st.composite
def sums(draw, depth=2):
    """Draw a random objective: nested sums over random pair expressions, with further terms around and inside them."""
    scalars = ("lam", "y", "both")
    kind = draw(st.sampled_from(["rbf", "product", "l1", "power", "mixed"]))
    order = draw(st.permutations(range(3)))
    extra = draw(st.sampled_from([0.0, 0.7, -1.3]))
    outside = draw(st.sampled_from(["none", "square", "sum"]))
    return draw(st.sampled_from(scalars)), kind, order, extra, outside


def pair(kind, x, z):
    return {
        "rbf": lambda: pt.exp(-((x - z) ** 2).sum()),
        "product": lambda: (z * x).sum(),
        "l1": lambda: pt.exp(-pt.abs(z - x).sum()),
        "power": lambda: (1 + (x * z).sum()) ** 2,
        "mixed": lambda: pt.exp(-0.5 * ((z - x) * (z - x)).sum()) * (x * z).sum() + pt.tanh((x * z).sum()),
    }[kind]()


@settings(max_examples=examples(5))
@given(case=sums())
def test_random_objectives_keep_value_and_gradient(case):
    which, kind, order, extra, outside = case

    def weight(a, b):
        return {"lam": a, "y": a * a, "both": a * b}[which]

    def inner(x_i):
        def term(lam_j, y_j, x_j):
            parts = [weight(lam_j, y_j), pair(kind, x_i, x_j), pt.constant(0.5)]
            return parts[order[0]] * parts[order[1]] * parts[order[2]] + extra * lam_j

        return sum_over(term, lam, y, X)

    total = sum_over(lambda lam_i, y_i, x_i: weight(lam_i, y_i) * inner(x_i) + extra * y_i, lam, y, X)
    W = total + {"none": 0.0, "square": (lam**2).sum(), "sum": -lam.sum()}[outside]
    (result,) = lift([W])
    assert not has(result, Scan)
    before, after, by_passes, as_written = evaluate([W, result, grad(W, lam), pytensor.grad(W, lam)])
    np.testing.assert_allclose(after, before, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(by_passes, as_written, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 3), (33, 2)])
def test_edge_shapes_and_types(shape, dtype):
    m, d = shape
    points, weights = RNG.normal(size=(m, d)).astype(dtype), RNG.random(m).astype(dtype)
    A, w = pt.tensor("A", dtype=dtype, shape=(None, None)), pt.tensor("w", dtype=dtype, shape=(None,))
    W = dual.W(w, A, w, RBF(0.7))
    assert lift([W])[0].dtype == dtype
    ours = pytensor.function([w, A], [lift([W])[0], grad(W, w)], mode="FAST_COMPILE")(weights, points)
    theirs = pytensor.function([w, A], [W, pytensor.grad(W, w)], mode=PLAIN)(weights, points)
    for mine, reference in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, reference, rtol=1e-4 if dtype == "float32" else 1e-10, atol=1e-6)


def test_one_row_repeated():
    problem = overlapping(m=8)
    points = np.repeat(problem.X[:1], 7, axis=0)
    (W,) = lift([dual.W(lam, X, y, RBF(0.5))])
    value = pytensor.function([lam, X, y], W, mode="FAST_COMPILE")(WEIGHTS, points, LABELS)
    assert value == pytest.approx(0.5 * (WEIGHTS @ LABELS) ** 2 - WEIGHTS.sum())
