"""The exact projection against a QP solver; its metric, its bounds, its gradient."""

import numpy as np
import oracles
import pytensor.tensor as pt
import pytest
from campaigns import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import MODES
from pytensor.graph.traversal import applys_between

from symsvm.compiler.functions import function, grad
from symsvm.objectives.certificate import infeasibility, multiplier
from symsvm.objectives.projections import P, Pi, box_section


@pytest.fixture(scope="module", params=MODES)
def project(request):
    """box_section with every argument an input, of any length."""
    v, y, upper, lower, scale = (pt.dvector(name) for name in ("v", "y", "upper", "lower", "scale"))
    c = pt.dscalar("c")
    graph = box_section(v, y, upper, scale, lower=lower, c=c)
    return function([v, y, upper, scale, lower, c], graph, mode=request.param)


SIZES = (1, 2, 7, 24)  # few, for JAX compiles anew for each


def distance(p, v, scale):
    return ((p - v) ** 2 / scale).sum()


def case(rng, kind):
    """A random projection problem; `kind` switches on its difficulties."""
    m = int(rng.choice(SIZES))
    v = rng.normal(size=m) * 10 ** rng.uniform(-2, 3)
    y = rng.choice([-1.0, 1.0], m)
    upper, lower, scale = np.full(m, 10 ** rng.uniform(-2, 2)), np.zeros(m), np.ones(m)
    if "one class" in kind:
        y[:] = rng.choice([-1.0, 1.0])
    if "normal" in kind:
        y = rng.normal(size=m)
        y[rng.random(m) < 0.2] = 0
    if "bounds" in kind:
        upper = 10 ** rng.uniform(-2, 2, m)
        upper[rng.random(m) < 0.2] = 0
        lower = -rng.random(m) * upper
    if "infinite" in kind:
        upper[rng.random(m) < 0.6] = np.inf
    if "metric" in kind:
        scale = 10 ** rng.uniform(-2, 2, m)
    if "ties" in kind:
        v = np.round(v)
        upper = np.ceil(upper)
    c = float(y @ np.clip(rng.normal(size=m), lower, upper)) if "shifted" in kind else 0.0
    return v, y, upper, scale, lower, c


KINDS = (
    "plain",
    "one class",
    "normal",
    "bounds",
    "infinite",
    "metric",
    "ties",
    "shifted bounds metric normal infinite",
)


@pytest.mark.parametrize("kind", KINDS)
def test_box_section_is_the_argmin(project, kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(25):
        v, y, upper, scale, lower, c = arguments = case(rng, kind)
        p = np.asarray(project(*arguments))
        size = 1 + np.abs(p).sum()
        assert abs(y @ p - c) <= 1e-12 * size * max(1, np.abs(y).max())
        assert (p >= lower).all()
        assert (p <= upper).all()
        reference = oracles.qp(np.diag(1 / scale), -v / scale, lower, upper, y, c)
        assert distance(p, v, scale) <= distance(reference, v, scale) * (1 + 1e-7) + 1e-7


FINITE = st.floats(-1e6, 1e6, allow_nan=False)
ROWS = st.tuples(FINITE, st.sampled_from([-1.0, 1.0]), st.one_of(st.floats(1e-6, 1e4), st.sampled_from([0.0, np.inf])))


@settings(max_examples=examples(300))
@given(rows=st.sampled_from(SIZES).flatmap(lambda m: st.lists(ROWS, min_size=m, max_size=m)))
def test_box_section_meets_the_optimality_conditions(project, rows):
    """Feasible, and stationary: the gradient p - v of |p - v|^2 / 2 leaves no direction to improve."""
    v, y, upper = map(np.array, zip(*rows, strict=True))
    p = np.asarray(project(v, y, upper, np.ones_like(v), np.zeros_like(v), 0.0))
    size = np.abs(v).sum() + 1
    assert infeasibility(p, 0.0, upper, (y, 0.0)) <= 1e-13 * size
    assert multiplier(p, p - v, 0.0, upper, y)[1] <= 1e-13 * size


def test_box_section_of_a_feasible_point_is_the_point(project):
    p = np.array([0.5, 0.25, 0.25, 0.0])
    y = np.array([1.0, -1.0, -1.0, 1.0])
    np.testing.assert_allclose(project(p, y, np.ones(4), np.ones(4), np.zeros(4), 0.0), p, atol=1e-16)


def test_p_then_pi_is_not_the_projection():
    v, y, C = np.array([3.0, 0.5, 1.0]), np.array([1.0, -1.0, -1.0]), 2.0
    alternating, exact = function([], [Pi(P(v, y), C), box_section(v, y, C)], mode="FAST_COMPILE")()
    np.testing.assert_allclose(alternating, [2.0, 1.0, 1.5])
    np.testing.assert_allclose(exact, [2.0, 0.75, 1.25])


def test_scalars_and_float32():
    v, y = np.array([2.0, -1.0, 0.3], dtype="float32"), np.array([1, -1, 1], dtype="float32")
    graph = box_section(v, y, 1.0)
    assert graph.dtype == "float32"
    p = function([], graph, mode="FAST_COMPILE")()
    assert abs(float(y @ p)) < 1e-6


def test_box_section_differentiates():
    """By v, the normal, the bounds and the metric: central differences at random points, which are no kinks."""
    m, rng = 8, np.random.default_rng(0)
    variables = [pt.dvector(name) for name in ("v", "y", "C", "scale")]
    weights = rng.normal(size=m)
    total = (box_section(*variables) * weights).sum()
    evaluate = function(variables, total, mode="FAST_COMPILE")
    gradient = function(variables, grad(total, variables), mode="FAST_COMPILE")
    for _ in range(10):
        at = [2 * rng.normal(size=m), rng.choice([-1.0, 1.0], m), rng.uniform(0.5, 2, m), rng.uniform(0.5, 2, m)]
        for k, exact in enumerate(gradient(*at)):
            for i in range(m):
                moved = [[a.copy() for a in at] for _ in range(2)]
                moved[0][k][i] += 1e-7
                moved[1][k][i] -= 1e-7
                assert exact[i] == pytest.approx((evaluate(*moved[0]) - evaluate(*moved[1])) / 2e-7, abs=1e-6)


def test_the_graph_is_small():
    """It compiles quickly because nothing is unrolled: its size does not depend on m."""
    sizes = {len(list(applys_between([], [box_section(np.ones(m), np.ones(m), 1.0)]))) for m in (3, 300)}
    assert len(sizes) == 1
    assert sizes.pop() < 300
