"""The dictionary between the paper and the code: data only.

The paper is E. Yeung, Support Vector Machines natively implemented in Theano, 2017. `SYMBOLS` maps its symbols, and
`EQUATIONS` its numbered equations, to names below `symsvm`. `OTHERS` does so for numbered equations of other documents,
cited as `Eq. 001:7` (001: X. Wei, M. Ren, Support Vector Machine, machine learning algorithm in C++; 002: D. Meoli,
Support Vector Machines, 2021; 003: F. Altoe, psvm, 2017). The docstring of each name cites its
equations back; `docs/dictionary.md` is generated from here.
"""

from typing import NamedTuple

__all__ = ["EQUATIONS", "OTHERS", "SYMBOLS", "Equation", "Symbol"]


class Symbol(NamedTuple):
    """A symbol of the paper: its LaTeX, its name in code, what it is, and where it lives below `symsvm`."""

    latex: str
    name: str
    meaning: str
    code: str


class Equation(NamedTuple):
    """A numbered equation that has code: what it says, and the names below `symsvm` that say it."""

    title: str
    code: tuple[str, ...]


SYMBOLS = (
    Symbol(r"X^{(i)}", "X", "the points, one a row, (m, d)", "paper.SVM_parallel"),
    Symbol(r"y^{(i)}", "y", "the labels, -1 or +1, (m,)", "data.signs"),
    Symbol(r"m", "m", "the number of points", "paper.SVM_parallel"),
    Symbol(r"d", "d", "the number of features", "validation.points"),
    Symbol(r"\theta", "theta", "the normal of the hyperplane, (d,)", "objectives.lagrangian.theta"),
    Symbol(r"b", "b", "the intercept, the multiplier of y.lam = 0", "objectives.dual.intercept"),
    Symbol(r"\xi_i", "xi", "the slack variables, (m,)", "objectives.primal.slack"),
    Symbol(r"C", "C", "the price of slack, the upper bound of lam", "objectives.dual.CSVC"),
    Symbol(r"\lambda_i", "lam", "the dual variable, the multipliers of the margins, (m,)", "paper.SVM_parallel"),
    Symbol(r"\mu_i", "mu", "the multipliers of xi >= 0, (m,)", "objectives.lagrangian.mu"),
    Symbol(r"\mathcal{L}", "lagrangian", "the Lagrangian", "objectives.lagrangian.lagrangian"),
    Symbol(r"f_0", "f0", "the primal objective, minimised", "objectives.primal.f0"),
    Symbol(r"\Phi", "Phi", "the feature map; never computed, only its kernel is", "kernels.Kernel"),
    Symbol(r"K(x, z)", "kernel.pair(x, z)", "the kernel, an expression of one pair", "kernels.Kernel.pair"),
    Symbol(r"\sigma", "sigma", "the width of the radial basis function", "kernels.RBF"),
    Symbol(r"\gamma", "gamma", "1 / (2 sigma^2), LIBSVM's convention", "kernels.RBF.from_gamma"),
    Symbol(r"W(\lambda)", "W", "the dual objective, minimised", "objectives.dual.W"),
    Symbol(r"f_1", "f1", "the double sum in W", "objectives.dual.f1"),
    Symbol(r"f_{1i}", "f1i", "the inner sum of f_1", "objectives.dual.f1i"),
    Symbol(r"\mathbf{q}", "q", "lam * y, elementwise, (m,)", "certificate.certify_svc"),
    Symbol(r"\mathrm{grad}\,W", "grad(W, lam)", "the gradient, by automatic differentiation", "compiler.grad"),
    Symbol(r"\alpha", "alpha", "always the step size", "solvers.ProjectedGradient"),
    Symbol(r"\Pi", "Pi", "the projection onto the box", "projections.Pi"),
    Symbol(r"\mathbf{P}", "P", "the projection onto the hyperplane", "projections.P"),
    Symbol(r"\hat{y}(X)", "yhat", "the decision value; its sign is the class", "objectives.dual.decisions"),
)

EQUATIONS = {
    1: Equation("the linear function y(x)", ("objectives.primal.affine",)),
    2: Equation("its level set, a hyperplane", ("objectives.primal.affine",)),
    3: Equation("the distance between two level sets", ("objectives.primal.distance",)),
    4: Equation("labels for two classes", ("data.signs",)),
    5: Equation("the margin constraints", ("objectives.primal.margins",)),
    6: Equation("the objective of the hard margin", ("objectives.primal.f0",)),
    7: Equation("the Lagrangian of the hard margin", ("objectives.lagrangian.lagrangian",)),
    8: Equation("stationarity in theta and b", ("objectives.lagrangian.theta",)),
    9: Equation("multipliers are not negative", ("certificate.infeasibility",)),
    10: Equation("complementarity", ("certificate.Certificate",)),
    11: Equation("the equality y.lam = 0", ("certificate.infeasibility",)),
    12: Equation("the norm of theta as a double sum", ("objectives.dual.f1",)),
    13: Equation("the Lagrangian in lam alone", ("objectives.dual.W",)),
    14: Equation("the kernel as an inner product", ("kernels.Kernel",)),
    15: Equation("the Lagrangian with a feature map", ("objectives.dual.W", "objectives.lagrangian.theta")),
    16: Equation("margins with slack", ("objectives.primal.slack", "certificate.certify_svc")),
    17: Equation("the objective with slack", ("objectives.primal.f0", "certificate.certify_svc")),
    18: Equation("the Lagrangian with slack", ("objectives.lagrangian.lagrangian",)),
    19: Equation("complementarity of the slack", ("objectives.primal.slack", "certificate.Certificate")),
    20: Equation("stationarity in the slack", ("objectives.lagrangian.mu",)),
    21: Equation("the dual problem", ("objectives.dual.W", "objectives.dual.CSVC", "paper.SVM_parallel.build_W")),
    22: Equation("the projection onto a box", ("projections.Pi",)),
    23: Equation("the projector onto a null space", ("projections.projector",)),
    24: Equation("the projection onto y.lam = 0", ("projections.P",)),
    25: Equation(
        "projected gradient descent",
        ("solvers.ProjectedGradient.step", "paper.SVM_parallel.build_update", "paper.SVM_parallel.train_model_full"),
    ),
    26: Equation("its two projections", ("projections.P", "projections.Pi", "paper.SVM_parallel.build_update")),
    27: Equation("support vectors lie on the margin", ("objectives.dual.intercept",)),
    28: Equation("the decision function", ("objectives.dual.decision",)),
    29: Equation("the intercept", ("objectives.dual.intercept", "paper.SVM_parallel.build_b")),
    30: Equation(
        "prediction",
        (
            "objectives.dual.decisions",
            "paper.SVM_parallel.make_predict",
            "paper.SVM_parallel.make_predictions",
            "paper.SVM_parallel.make_predictions_parallel",
        ),
    ),
    31: Equation("the double sum f_1", ("objectives.dual.f1", "paper.SVM_parallel.build_W")),
    32: Equation("the inner sum f_1i", ("objectives.dual.f1i", "paper.SVM_parallel.build_W")),
    33: Equation("the radial basis function", ("kernels.RBF",)),
}

OTHERS = {
    "001:1": Equation("the decision function, and the errors", ("solvers.simplified_smo.errors",)),
    "001:2": Equation("KKT at 0", ("solvers.simplified_smo.violates",)),
    "001:3": Equation("KKT at C", ("solvers.simplified_smo.violates",)),
    "001:4": Equation("KKT in between", ("solvers.simplified_smo.violates",)),
    "001:5": Equation("the segment of lam_j, labels that differ", ("solvers.simplified_smo.limits",)),
    "001:6": Equation("the segment of lam_j, equal labels", ("solvers.simplified_smo.limits",)),
    "001:7": Equation("the best lam_j on the line", ("solvers.simplified_smo.unclipped",)),
    "001:8": Equation("lam_j cut at the segment's ends", ("solvers.simplified_smo.clipped",)),
    "001:9": Equation("lam_i, which keeps the equality", ("solvers.simplified_smo.partner",)),
    "001:10": Equation("the threshold b_1", ("solvers.simplified_smo.threshold",)),
    "001:11": Equation("the threshold b_2", ("solvers.simplified_smo.threshold",)),
    "002:1": Equation("AdaGrad", ("solvers.AdaGrad",)),
    "002:1.6": Equation("the primal with the hinge loss", ("objectives.primal_risk.risk", "objectives.PrimalRisk")),
    "002:1.7": Equation("the hinge loss", ("objectives.losses.hinge",)),
    "002:1.8": Equation("its subgradient", ("objectives.losses.hinge",)),
    "002:1.9": Equation("the bias as a weight", ("objectives.primal_risk.risk", "objectives.PrimalRisk")),
    "002:1.10": Equation("the squared hinge loss", ("objectives.losses.squared_hinge", "objectives.PrimalRisk")),
    "002:1.16": Equation("the Wolfe dual, q = -1", ("objectives.LagrangianDual",)),
    "002:1.23": Equation("the Wolfe dual, bias embedded: Q + yy'", ("objectives.LagrangianDual",)),
    "002:1.24": Equation("its Lagrangian, mu free in sign", ("objectives.lagrangian_dual.lagrangian",)),
    "002:1.25": Equation("stationarity in alpha", ("objectives.lagrangian_dual.right_hand_side",)),
    "002:1.26": Equation("the inner linear system", ("objectives.lagrangian_dual.right_hand_side",)),
    "002:1.27": Equation("the gradient in mu", ("objectives.lagrangian_dual.lagrangian",)),
    "002:1.28": Equation("the gradient in lam+", ("objectives.lagrangian_dual.lagrangian",)),
    "002:1.29": Equation("the gradient in lam-", ("objectives.lagrangian_dual.lagrangian",)),
    "002:1.30": Equation("minimal residuals", ("minres.minres", "objectives.LagrangianDual")),
    "002:1.31": Equation("the Lagrangian, bias embedded", ("objectives.lagrangian_dual.lagrangian",)),
    "002:2.2": Equation("the epsilon-insensitive loss", ("objectives.losses.epsilon_insensitive",)),
    "002:2.3": Equation("its subgradient, a sign", ("objectives.losses.epsilon_insensitive",)),
    "002:2.6": Equation("the primal of regression", ("objectives.primal_risk.risk", "objectives.PrimalRisk")),
    "002:2.7": Equation("with the squared loss", ("objectives.losses.squared_epsilon_insensitive",)),
    "002:2.15": Equation("the Wolfe dual of regression, + q.alpha", ("objectives.LagrangianDual",)),
    "003:13": Equation("the hard margin as a quadratic program", ("solvers.quadratic_programming.hard_margin",)),
}
