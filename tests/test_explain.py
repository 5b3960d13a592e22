"""explain: its sentences and formulas are complete and true, as text, picture and page."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from problems import KERNELS, overlapping
from pytensor.scan import foldl

from symsvm import (
    CSVC,
    RBF,
    SVC,
    SVR,
    NuSVC,
    NuSVR,
    Objective,
    OneClassSVM,
    ProjectedGradient,
    SVM_parallel,
    compile,
    explain,
    pair_kernel,
    sum_over,
)
from symsvm.compiler.functions import value_and_grad
from symsvm.compiler.lifting import PASSES, lift, stages, tile
from symsvm.compiler.ops.squared_distances import squared_distances
from symsvm.explanation.formula import Formula
from symsvm.explanation.graph_reader import GraphReader
from symsvm.graphs.structure import leaves
from symsvm.objectives import QuadraticProgram, dual
from symsvm.objectives.machine_duals import c_svc_dual, nu_svc_dual, nu_svr_dual, one_class_dual, svr_dual

sys.path.insert(0, str(Path(__file__).parent.parent / "docs"))

import rewrites as generator  # docs/rewrites.py

X, lam, y = pt.dmatrix("X"), pt.dvector("lam"), pt.dvector("y")


def shared(m, **options):
    rng = np.random.default_rng(0)
    values = {"lam": np.zeros(m), "X": rng.normal(size=(m, 2)), "y": rng.choice([-1.0, 1.0], m)}
    return [pytensor.shared(v, name=n, **options) for n, v in values.items()]


def formula(**graphs):
    reader = GraphReader()
    return [str(line) for line in Formula({n: reader.read(g) for n, g in graphs.items()}, reader.loop_variables).lines]


def fold(step):
    start = pt.constant(0.5, dtype="float64")
    return foldl(step, sequences=[lam], outputs_info=[start], return_updates=False)


def test_csvc():
    text = explain(CSVC(lam, X, y, 2.0, RBF(0.5)))
    assert text.startswith("CSVC(W of lam, 0 <= lam <= 2, a.lam = 0)\n")
    assert "  Eq. 21: the dual problem\n" in text
    assert "  Eq. 33: the radial basis function\n" in text
    assert (
        "sum over the rows (lam_j, y_j, x_j) of\n      lam_j * y_j * exp(-sum((x_i - x_j)**2) / (2 * sigma**2))" in text
    )
    assert re.search(r"reduce_to_sum +2\n", text)
    assert "not used: map_to_batch, batched_inner_to_sum, tile" in text
    once, step = text.split("once a run\n")[1].split("in each step\n")
    assert "  K = exp(-0.5 * squared_distances(X, X) / sigma**2)\n" in once
    assert "  grad W = -1 + Kq * y\n" in step
    assert "1 product with a matrix" in step
    assert "Backend: NUMBA" in step
    assert "not compiled yet" in step.replace("\n ", "")


# name -> (the program of labels, the dual in symbols, the values of its inputs but X).
MACHINES = {
    "csvc": (lambda y: QuadraticProgram.c_svc(y, 2.0), c_svc_dual(RBF(0.5)), {"C": 2.0}),
    "csvc without intercept": (
        lambda y: QuadraticProgram.c_svc(y, 2.0, intercept=False),
        *(c_svc_dual(RBF(0.5), intercept=False), {"C": 2.0}),
    ),
    "nu_svc": (lambda y: QuadraticProgram.nu_svc(y, 0.4), nu_svc_dual(RBF(0.5)), {"weight": 1.0, "nu": 0.4}),
    "svr": (lambda y: QuadraticProgram.svr(y, 2.0, 0.1), svr_dual(RBF(0.5)), {"C": 2.0, "epsilon": 0.1}),
    "svr without intercept": (
        lambda y: QuadraticProgram.svr(y, 2.0, 0.1, intercept=False),
        *(svr_dual(RBF(0.5), intercept=False), {"C": 2.0, "epsilon": 0.1}),
    ),
    "nu_svr": (lambda y: QuadraticProgram.nu_svr(y, 2.0, 0.4), nu_svr_dual(RBF(0.5)), {"C": 2.0, "nu": 0.4}),
    "one_class": (
        lambda y: QuadraticProgram.one_class(np.ones(len(y)), 0.4),
        *(one_class_dual(RBF(0.5)), {"weight": 1.0, "nu": 0.4}),
    ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_symbolic_duals_are_read_as_their_programs(name):
    """The program that is read from W and its constraints is the one that the constructor makes."""
    problem = overlapping()
    make, objective, values = MACHINES[name]
    expected, m = make(problem.y), len(problem.y)
    data = {k: np.full(m, v) if k in ("C", "weight") else v for k, v in values.items()}
    found = compile(objective, "auto").quadratic_program(m, y=problem.y, **data)
    for field in ("p", "lower", "upper", "m", "group", "total", "diagonal", "constant"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field), err_msg=field)


def test_estimators_show_their_dual():
    text = explain(SVR(kernel=RBF(0.5), C=3.0))
    assert "W = epsilon * sum(lam) - sum(y * u) + 0.5 * sum over the rows (a_i of u, x_i) of\n" in text
    assert "  W = s/2 sum_ij q_i q_j H_ij + sum_i (p_i lam_i), q_i = lam[:len(y)]_i - lam[len(y):]_i\n" in text
    assert "proves it symmetric and positive semi-definite. 'auto' takes Decomposition." in " ".join(text.split())
    drawn = " ".join(ElementTree.fromstring(explain(SVR(kernel=RBF(0.5)), format="svg")).itertext())
    assert "W = epsilon * sum(lam) - sum(y * u) + 0.5 * f" in re.sub(r"\s+", " ", drawn)
    assert "  grad W = epsilon + place(-y + Kq, [:len(y)]) + place(y - Kq, [len(y):])\n" in text
    assert "  q = lam[:len(y)] - lam[len(y):]\n" in text
    assert "grad W = place(-y + Kq, [:len(y)]) + place(y - Kq, [len(y):])" in explain(NuSVR(kernel=RBF(0.5)))
    embedded = explain(SVC(kernel=RBF(0.5), penalize_intercept=True))
    assert "Objective(W of lam, 0 <= lam <= C)\n" in embedded
    assert "/ (2 * sigma**2)) + c)\n" in embedded
    assert "nu" in {v.name for v in leaves(NuSVC(kernel=RBF(0.5)).objective_.bounds)[0]}
    estimator = OneClassSVM()
    with pytest.raises(AttributeError, match="fit first, or give a Kernel object"):
        estimator.explain()
    fitted = estimator.fit(overlapping().X).explain()
    assert "Last fit\n  1 problem solved by Decomposition, stopped: 1 by tol\n" in fitted
    assert "rows of the kernel matrix computed" in fitted


def test_what_is_not_read_says_why():
    lam, X = pt.dvector("lam"), pt.dmatrix("X")
    W = lam @ RBF(1.0)(X) @ lam + pt.maximum(lam, 1.0).sum()
    assert "Not as a sum over pairs and points: maximum of lam is not smooth. 'auto' takes" in explain(
        Objective(W, lam)
    )
    rows = (np.array([[1.0, 1.0], [1.0, -1.0]]), np.zeros(2))
    assert "Its constraints are not sums over groups" in explain(Objective((lam**2).sum(), lam, equality=rows))


def test_a_custom_objective():
    W = (pt.exp(lam) * y).sum() + 0.3 * sum_over(lambda lam_i, x_i: lam_i**2 * x_i.sum(), lam, X)
    text = explain(Objective(W, variable=lam, upper=1.0))
    assert "Eq." not in text
    assert "sum over the rows (lam_i, x_i) of\n    lam_i**2 * sum(x_i)" in text
    assert "stored: (?,) float64" in text  # the sums of the rows of X


def test_numbers_of_a_program_are_shown():
    u, _, t = shared(6)
    for scale in (0.3, 0.7):  # which share compiled functions
        program = compile(Objective(scale * (u**2).sum() - (t * u).sum(), u), ProjectedGradient(), mode="FAST_COMPILE")
        text = explain(program)
        assert f"W = {scale} * sum(lam**2) - sum(y * lam)" in text
        assert f"grad W = {2 * scale:g} * lam - y" in text
        assert "Eq. 25: projected gradient descent" in text
        assert "FAST_COMPILE" in text


def test_a_gram_matrix_that_does_not_fit_is_tiled():
    u, Z, t = shared(3000)
    objective = CSVC(u, Z, t, 1.0, RBF(0.5))
    small = explain(compile(objective, ProjectedGradient(0.1), mode="FAST_COMPILE", memory=2**23))
    assert re.search(r"tile +1\n", small)
    assert "a tile at a time\n  K = exp(" in small
    assert "tiled: a matrix of 68.7 MiB does not fit the memory limit of 8 MiB" in small
    large = explain(compile(objective, ProjectedGradient(0.1), mode="FAST_COMPILE"))
    assert "stored: (3000, 3000) float64, 68.7 MiB" in large
    assert "Memory: hoisted: K" in large
    assert "not used: map_to_batch, batched_inner_to_sum, tile" in large


def test_the_reason_why_a_matrix_is_not_tiled():
    u, Z, t = shared(3000)
    chebyshev = pair_kernel(lambda x, z: pt.exp(-abs(x - z).max()))
    text = explain(compile(CSVC(u, Z, t, 1.0, chebyshev), ProjectedGradient(0.1), mode="FAST_COMPILE", memory=2**23))
    assert "is no sum over features" in text.replace("\n  ", " ")
    u, Z, t = shared(20000, shape=None)
    u, Z, t = (pytensor.shared(v.get_value(), name=v.name, shape=v.get_value().shape) for v in (u, Z, t))
    assert "The passes are not applied: " in explain(CSVC(u, Z, t, 1.0, chebyshev))


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (lambda a, acc: acc * (1 + a), "than add to the accumulator: acc = acc * (1 + lam_i)."),
        (lambda a, acc: acc + a * pt.sin(acc), "than add to the accumulator: acc = acc + lam_i * sin(acc)."),
    ],
)
def test_the_reason_why_a_loop_is_not_lifted(step, why):
    text = explain(Objective(fold(step) + lam.sum(), variable=lam))
    assert why in text.replace("\n", " ")
    assert "f = fold over the rows (lam_i), acc from 0.5, of\n" in text
    assert "grad W = loop(lam)" in text


def test_the_papers_class_before_and_after_training():
    problem = overlapping()
    svm = SVM_parallel(problem.X, problem.y, 12, 1.5, 0.8, 0.1, random_state=0, projection="exact", mode="FAST_COMPILE")
    assert svm.program_ is None
    before = explain(svm)
    assert svm.program_ is None  # nothing was compiled
    assert "CSVC(W of lam, 0 <= lam <= C, a.lam = 0)" in before
    assert "Eq. 31: the double sum f_1" in before
    svm.train_model_full(max_iters=1)
    after = explain(svm)
    for text in (before, after):
        assert "stored: (12, 12) float64, 1.12 KiB" in text
        assert "squared_distances(X, X)" in text
    assert "ProjectedGradient(alpha=0.1" in after
    assert after.split("Step:")[0] == before.split("Step:")[0]


@pytest.mark.parametrize("name", KERNELS)
def test_formulas_compute_the_value_of_the_graph(name):
    """The lines, run as NumPy, give the value of the graph, before and after every stage."""
    problem = overlapping()
    kernel = KERNELS[name][0]
    W = dual.W(lam, X, y, kernel)
    given = {lam: problem.lam, X: problem.X, y: problem.y}
    value, gradient = pytensor.function(list(given), [W, pytensor.grad(W, lam)], mode="FAST_COMPILE")(*given.values())
    running = lift(value_and_grad(W, lam))
    for graphs in (*(stage.graphs for stage in stages([W])), running, tile(running)):
        scope = {name: getattr(np, name) for name in ("exp", "abs", "tanh", "sum", "mean", "sqrt")}
        scope |= {"squared_distances": squared_distances} | {v.name: array for v, array in given.items()}
        scope |= {name: np.asarray(numbers) for name, numbers in kernel.get_params().items() if np.ndim(numbers)}
        for line in reversed(formula(**dict(zip(("W", "g"), graphs, strict=False)))):
            exec(line, scope)
        assert scope["W"] == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(scope.get("g", gradient), gradient, rtol=1e-9, atol=1e-10)


def test_formulas_of_slices_shapes_and_functions():
    i = pt.constant(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), name="i")
    assert formula(f=pt.sqrt(lam[1:] - lam[:-1]).mean()) == ["f = mean(sqrt(lam[1:] - lam[:-1]))"]
    assert formula(f=-(lam - i) / 2) == ["f = (-lam + i) / 2"]
    assert formula(f=lam.shape[0] * X[0, 1]) == ["f = len(lam) * X[0, 1]"]
    assert formula(f=pt.switch(lam > 0, lam, 0.0)) == ["f = where(lam > 0, lam, 0)"]
    assert formula(f=pt.dot(X.T, lam)) == formula(f=X.T @ lam) == ["f = X.T @ lam"]
    assert formula(f=X / X.sum(axis=1, keepdims=True)) == ["f = X / sum(X, axis=1)[:, None]"]


def test_two_inputs_of_one_name_get_two_names():
    objective = CSVC(lam, X, y, 1.0, RBF(0.5) + RBF(0.7))
    assert "sigma2**2" in explain(objective)


def test_the_picture_is_xml_and_the_page_loads_no_resources():
    objective = CSVC(lam, X, y, 2.0, RBF(0.5))
    picture = explain(objective, format="svg")
    root = ElementTree.fromstring(picture)
    words = " ".join("".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text"))
    for word in ("As written", "After the passes", "Kq = K @ q", "sigma", "once a run", "squared_distances × 1"):
        assert word in words
    for node in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(node.get("width")) > 0
        assert float(node.get("x", 0)) >= 0
    page = explain(objective, format="html")
    assert page.startswith("<!doctype html>")
    assert "<svg viewBox" in page
    assert not re.search(r"http|src=|href=|url\(|@import", page)


def test_boxes_do_not_overlap():
    picture = explain(CSVC(lam, X, y, 2.0, KERNELS["composed"][0]), format="svg")
    panels = ElementTree.fromstring(picture).findall("{http://www.w3.org/2000/svg}g")
    assert len(panels) == 2
    for panel in panels:
        rects = [
            [float(r.get(k)) for k in ("x", "y", "width", "height")]
            for r in panel.iter("{http://www.w3.org/2000/svg}rect")
        ]
        for n, (x1, y1, w1, h1) in enumerate(rects):
            for x2, y2, w2, h2 in rects[:n]:
                assert x1 + w1 <= x2 or x2 + w2 <= x1 or y1 + h1 <= y2 or y2 + h2 <= y1


def test_bad_input():
    objective = Objective((lam**2).sum(), variable=lam)
    with pytest.raises(ValueError, match="format must be one of 'text', 'svg', 'html', got 'png'"):
        explain(objective, format="png")
    with pytest.raises(TypeError, match="x must be an Objective, a Program"):
        explain(3)


def test_stages_end_where_lift_does():
    (*_, last) = stages([dual.W(lam, X, y, RBF(0.5))])
    assert last.name == "products"
    assert set(last.fired) < set(PASSES)
    assert formula(W=last.graphs[0]) == formula(W=lift([dual.W(lam, X, y, RBF(0.5))])[0])


def test_the_generated_page_is_current_and_has_every_pass():
    page = generator.page()
    assert generator.PAGE.read_text(encoding="utf-8") == page, "run make docs"
    assert re.findall(r"^### `(\w+)`$", page, flags=re.MULTILINE) == list(PASSES)


@pytest.mark.parametrize("name", PASSES)
def test_each_example_of_the_page_shows_its_pass(name):
    before, after = generator.example(name)
    assert before != after
