"""Write docs/rewrites.md from the passes: `python docs/rewrites.py`."""

import inspect
from pathlib import Path

import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import in2out
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors

from symsvm import CSVC, RBF, pair_kernel, sum_over
from symsvm.compiler.functions import hoist, value_and_grad
from symsvm.compiler.lifting import PASSES, lift, lower, stages, tile
from symsvm.compiler.ops import KernelMatvec
from symsvm.explanation.formula import Formula
from symsvm.explanation.graph_reader import GraphReader
from symsvm.objectives.sums import map_rows

PAGE = Path(__file__).with_suffix(".md")

X, Z = pt.dmatrix("X"), pt.dmatrix("Z")
lam, y, q = pt.dvector("lam"), pt.dvector("y"), pt.dvector("q")
RBF_XZ = pt.exp(-((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))

# pass -> (a small graph, the reason for the pass)
EXAMPLES = {
    "reduce_to_sum": (
        sum_over(lambda lam_i, x_i: lam_i * pt.tanh(x_i).sum(), lam, X),
        "A loop runs one row after another, and its gradient is a longer loop that stores every step. A sum over an "
        "array is one call, its gradient is a product, and the next passes can simplify it.",
    ),
    "map_to_batch": (
        map_rows(lambda x_i: pt.exp(x_i).sum(), X),
        "The same for a loop that returns one value per row, such as predictions.",
    ),
    "batched_inner_to_sum": (
        rewrite_graph(pair_kernel(lambda x, z: pt.dot(x - z, x - z))(X, Z), include=("canonicalize",)),
        "An inner product that is written for one pair becomes, for all pairs, a stack of tiny products of matrices, "
        "which is slow in every library. The next two passes match the sum over features.",
    ),
    "squared_distances": (
        ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2),
        "The array of all differences has m n d entries, the matrix of distances m n. The operation has loops of its "
        "own; where it uses a product of matrices, |a|^2 + |b|^2 - 2 a.b, pairs that would lose digits are computed by "
        "differences.",
    ),
    "sum_of_products_to_dot": (
        (pt.dot(X, Z.T) * q[None, :]).sum(axis=1),
        "The products are not stored, only their sum.",
    ),
    "quadratic_form": (
        (q * pt.dot(pt.exp(pt.dot(X, X.T)), q)).sum(),
        "PyTensor differentiates q.(Kq) into Kq + K'q, two passes over a large matrix. If the expression of K proves "
        "that it is symmetric, the gradient is 2 Kq, and shares one product with the value.",
    ),
    "tile": (
        pt.dot(lift([RBF_XZ])[0], q),
        "A matrix that does not fit into memory is computed one tile at a time, and each tile is multiplied while it "
        "is in the cache. The pass runs only if the matrix exceeds `memory`: a matrix that fits is computed only once.",
    ),
}


def formula(outputs, also=()):
    """Return the formulas of graphs, by name."""
    reader = GraphReader()
    terms = {name: reader.read(graph) for name, graph in outputs.items()}
    lines = Formula(terms, reader.loop_variables, named=[reader.read(v) for v in also]).lines
    texts = []
    for line in lines:
        first, *rest = str(line).split("\n")
        texts += [first, *("    " * (depth + 1) + row for depth, row in enumerate(rest))]
    return "\n".join(texts)


def example(name):
    """Return the example of a pass before and after that pass alone."""
    graph, _ = EXAMPLES[name]
    fgraph = FunctionGraph(outputs=[graph], clone=True, copy_inputs=False)
    in2out(PASSES[name]).rewrite(fgraph)
    before, after = formula({"f": graph}), formula({"f": fgraph.outputs[0]})
    return before, after + "".join(f"\n\n{source}" for source in epilogues(fgraph.outputs))


def epilogues(graphs):
    """Yield the statements that are generated for an entry of each tiled matrix."""
    ops = dict.fromkeys(
        v.owner.op for v in ancestors(graphs) if v.owner is not None and isinstance(v.owner.op, KernelMatvec)
    )
    for op in ops:
        counts = {"s": len(op.hs), "u": op.n_rows, "v": op.n_columns, "theta": op.n_numbers}
        names = [f"{name}{i or ''}" for name, n in counts.items() for i in range(n)]
        sums = [h.source([f"a{i}_k", f"b{i}_k"], f"s{i or ''} += ").replace("+=  =", "+=") for i, h in enumerate(op.hs)]
        yield "\n".join(
            [
                "# generated, for a pair i, j of a tile: sums over features and then an epilogue",
                *(f"{text}  # over the features k".replace("0_k", "_k") for text in sums),
                op.epilogue.source(names, "K_ij"),
            ]
        )


def fence(text):
    """Return a block of text that is not run."""
    return f"```text\n{text}\n```"


def passes():
    """Yield the section of each pass."""
    for name, rewrite in PASSES.items():
        rule = inspect.getdoc(rewrite.fn).partition("\n")[0]
        path = Path(inspect.getsourcefile(rewrite.fn)).resolve().relative_to(PAGE.parent.parent)
        before, after = example(name)
        yield "\n\n".join(
            [
                f"### `{name}`",
                f"[{path}](../{path}): `{rule}`",
                EXAMPLES[name][1],
                f"Before:\n\n{fence(before)}",
                f"After:\n\n{fence(after)}",
            ]
        )


def whole():
    """Yield the steps from the paper's dual, a nested reduce, to the generated source."""
    W = CSVC(lam, X, y, 1.0, RBF(0.5)).value
    yield "As written:\n\n" + fence(formula({"W": W}))
    for stage in stages([W]):
        fired = ", ".join(f"`{name}` ({n})" for name, n in stage.fired.items())
        title = "PyTensor's canonical form" if not fired else f"After {fired}"
        yield f"{title}:\n\n" + fence(formula({"W": stage.graphs[0]}))
    step = lower(lift(value_and_grad(W, lam)))
    yield "Then W is differentiated; value and gradient share one product:\n\n" + fence(
        formula(dict(zip(("W", "g"), step, strict=True)))
    )
    constants, inputs, left = hoist(step, [lam])
    (K,) = inputs
    K.name = "K"
    yield "If K fits into memory, it is hoisted. Once per run:\n\n" + fence(formula({"K": constants[0]}))
    yield "In each step:\n\n" + fence(formula(dict(zip(("W", "g"), left, strict=True))))
    tiled = tile(step)
    constants, *_ = hoist(tiled, [lam])
    yield (
        "If it does not fit, its product is a KernelMatvec: K is computed in each step, one tile at a time:\n\n"
        + fence(formula(dict(zip(("W", "g"), tiled, strict=True)), constants))
    )
    (source,) = epilogues(tiled)
    yield f"The generated source, with theta = -1 / (2 sigma^2):\n\n{fence(source)}"


def page():
    """Return the text of docs/rewrites.md."""
    head = [
        "# What the compiler does",
        "This page is generated from `symsvm/compiler/rewrites` by `make docs`. `symsvm.explain(objective)` prints the "
        'same for your own problem, and `symsvm.explain(objective, format="html")` draws it. [reading.md](reading.md) '
        "says how a W that was lifted by these passes is recognised as a quadratic program.",
        "Formulas are written as in NumPy, and a loop as `sum over the rows (lam_i, x_i) of`, with its term below.",
        "Before all passes, numbers are widened. PyTensor gives a Python number the smallest type that holds it: "
        "`2` is an int8, and `pt.sqrt(2)` a float32 with seven digits. [`widen`](../symsvm/graphs/dtypes.py) computes "
        "in float64 what is narrow only because of numbers. float32 arrays and casts to float32 are not changed.",
        "## The passes, in order",
    ]
    return "\n\n".join([*head, *passes(), "## The dual of the paper, from a reduce in a reduce", *whole()]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
