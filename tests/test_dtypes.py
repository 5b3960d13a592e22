"""A graph of float64 computes in float64 whatever its numbers: Python numbers introduce no float32."""

import random

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from campaigns import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pytensor.compile.mode import get_mode
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan

from symsvm import RBF, pair_kernel, sum_over
from symsvm.compiler.functions import function
from symsvm.compiler.lifting import lift, stages
from symsvm.compiler.matvec import kernel_matvec
from symsvm.compiler.ops import factor
from symsvm.graphs.dtypes import widen
from symsvm.graphs.structure import scalar_constant

x, X = pt.dvector("x"), pt.dmatrix("X")
VECTOR = np.array([0.3, -1.2, 0.7])
POINTS = np.random.default_rng(0).normal(size=(5, 3))

# Python numbers, constants, shapes and inputs.
LEAVES = ["2", "2.0", "0.3", "7", "0.5", "1.0", "100", "p.constant(3)", "p.constant(1.5)", "x.shape[0]", "x", "x[1]"]
# Templates with places for arguments, whose values neither vanish nor overflow in any combination.
FORMS = [
    "({} + {})",
    "({} - {})",
    "({} * {})",
    "({} / (2 + abs({})))",
    "p.sqrt(abs({}))",
    "p.exp(-abs({}))",
    "p.tanh({} / 3)",
    "p.log(1 + abs({}))",
    "p.sin({})",
    "p.maximum({}, {})",
    "p.switch(p.gt({}, {}), {}, 3)",
    "p.sum(p.stack([p.max({}), p.min({}), 1]))",
    "p.mean(p.stack([2, p.sum({}), 1.0]))",
    "p.prod(p.stack([p.sqrt(2), p.tanh(p.max({}))]))",
    "p.concatenate([[p.sqrt(2)], p.stack([p.sum({}), 1])])[0]",
    "(p.sqrt(p.gt({}, 1) * 3) * p.sqrt(2))",
    "(1 + p.sqrt(3) * p.cumsum(p.stack([0.5, p.max({})])).max())",
]


class NumPy:
    """The functions of `pytensor.tensor` that the expressions use, in NumPy and float64."""

    def __getattr__(self, name):
        return getattr(np, name)

    constant = staticmethod(np.float64)

    def gt(self, a, b):
        return np.greater(a, b).astype("float64")

    def switch(self, condition, a, b):
        return np.where(condition > 0, a, b)


def expression(choose, depth):
    """A random expression as text; `choose` picks one of a list."""
    if depth == 0 or choose([True, False, False]):
        return choose(LEAVES)
    form = choose(FORMS)
    return form.format(*(expression(choose, depth - 1) for _ in range(form.count("{}"))))


def graph(text):
    return pt.as_tensor(eval(text, {"p": pt, "x": x})).astype("float64") * x.sum()


def value(text):
    with np.errstate(all="ignore"):
        return eval(text, {"p": NumPy(), "x": VECTOR}) * VECTOR.sum()


def narrow(graphs):
    """The float32 variables that a graph computes; a number in it is cast exactly."""
    every = [v for v in ancestors(graphs) if getattr(v.type, "dtype", None) in ("float16", "float32")]
    return [v for v in every if scalar_constant(v) is None]


@settings(max_examples=examples(100))
@given(st.randoms(use_true_random=False))
def test_random_expressions(rng):
    text = expression(rng.choice, 3)
    (wide,) = widen([graph(text)])
    assert not narrow([wide]), text
    (again,) = widen([wide])
    assert again is wide  # widening is idempotent
    computed = pytensor.function([x], wide, mode=get_mode("FAST_COMPILE"), on_unused_input="ignore")(VECTOR)
    np.testing.assert_allclose(computed, value(text), rtol=1e-12, atol=1e-12, err_msg=text)


@pytest.mark.parametrize("mode", ["NUMBA", "JAX", "FAST_COMPILE"])
def test_expressions_on_each_backend(mode):
    """All expressions in one function, also those of constants alone, have float64 precision."""
    rng = random.Random(0)
    texts = [expression(rng.choice, 3) for _ in range(12)] + [form.format(*"2372") for form in FORMS]
    graphs = [graph(text) for text in texts] + [pt.sqrt(2).astype("float64"), pt.exp(1) * pt.ones(2)]
    expected = [value(text) for text in texts] + [2**0.5, np.exp([1.0, 1.0])]
    computed = function([x], graphs, mode=mode)(VECTOR)
    for text, mine, right in zip([*texts, "sqrt(2)", "exp(1)"], computed, expected, strict=True):
        assert np.asarray(mine).dtype == "float64", text
        np.testing.assert_allclose(mine, right, rtol=1e-12, atol=1e-12, err_msg=text)


ROOT = pair_kernel(lambda x, z: pt.exp(-((x - z) ** 2).sum() / pt.sqrt(2)) * (2.0 / (2 + pt.sqr(2.0))))


def root(X, Z):
    """ROOT in NumPy."""
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(-1) / np.sqrt(2)) / 3


@pytest.mark.parametrize("mode", ["JAX", "FAST_COMPILE"])
def test_a_kernel_in_tiles(mode):
    """The form of the kernel, from which the loops are generated, has its numbers in float64."""
    Z = pt.dmatrix("Z")
    K, Kq = function([X, Z, x], [ROOT(X, Z), kernel_matvec(ROOT, X, Z, x)], mode=mode)(POINTS, POINTS[:3], VECTOR)
    np.testing.assert_allclose(K, root(POINTS, POINTS[:3]), rtol=1e-12)
    np.testing.assert_allclose(Kq, root(POINTS, POINTS[:3]) @ VECTOR, rtol=1e-12)
    form = factor(lift([ROOT(X, Z)])[0])
    assert not narrow([form.epilogue.output, *form.rows, *form.columns, *form.numbers])


def test_a_loop_that_stays_a_loop():
    """The numbers of a step that stays a loop are widened too."""
    total = pytensor.scan(
        lambda x_i, total: total * pt.sqrt(2) + x_i * pt.exp(1),
        sequences=[x],
        outputs_info=[pt.zeros(())],
        return_updates=False,
    )[-1]
    (lifted,) = lift([total])
    (loop,) = [v.owner.op for v in ancestors([lifted]) if v.owner is not None and isinstance(v.owner.op, Scan)]
    assert not narrow(loop.inner_outputs)
    expected = 0.0
    for x_i in VECTOR:
        expected = expected * np.sqrt(2) + x_i * np.e
    np.testing.assert_allclose(function([x], total, mode="FAST_COMPILE")(VECTOR), expected, rtol=1e-14)


def test_numbers_that_become_inputs():
    """PyTensor makes 3.5 a float32 and 0.3 a float64; the number changes no type and causes no compilation."""
    compiled = {c: function([x], (x * c).sum() / pt.sqrt(c), mode="FAST_COMPILE") for c in (3.5, 0.3)}
    for c, W in compiled.items():
        np.testing.assert_allclose(W(VECTOR), VECTOR.sum() * np.sqrt(c), rtol=1e-14)
        loop = sum_over(lambda x_i, c=c: x_i * pt.sqrt(c), x)
        np.testing.assert_allclose(function([x], loop, mode="FAST_COMPILE")(VECTOR), W(VECTOR), rtol=1e-14)
    assert compiled[3.5].function is compiled[0.3].function


def test_intended_narrow_types_stay():
    f, i = pt.fvector("f"), pt.bvector("i")
    rounded = pt.cast(x, "float32") * x
    for graph in (
        f * 2.0,
        f.mean() / f.shape[0].astype("float32"),
        f * pt.sqrt(x[0]).astype("float32"),
        rounded,
        i * 2,
        x[i[0] + 1],
        x * 2 + 0.5,
    ):
        assert widen([graph])[0] is graph
    (product,) = widen([f * pt.sqrt(2)])
    assert product.dtype == "float32"
    assert narrow([product])
    (output,) = widen([pt.sqrt(2)])
    assert output.dtype == "float32"  # outputs keep their types


def test_integers_of_numbers_do_not_overflow():
    graph = x * (pt.constant(100) * 2) + pt.sqr(pt.constant(100))
    np.testing.assert_array_equal(function([x], graph, mode="FAST_COMPILE")(VECTOR), VECTOR * 200 + 10_000)


def test_a_mode_includes_the_pass():
    graph = x * pt.sqrt(2) * pt.exp(1)
    mode = get_mode("FAST_COMPILE").including("symsvm")
    np.testing.assert_allclose(pytensor.function([x], graph, mode=mode)(VECTOR), VECTOR * 2**0.5 * np.e, rtol=1e-15)


def test_a_named_kernel_is_left_as_it_is():
    """A graph in which every number is exact is not rebuilt."""
    K = RBF(sigma=2.0)(X)
    assert widen([K])[0] is K
    *_, last = stages([K])
    assert not narrow(last.graphs)
