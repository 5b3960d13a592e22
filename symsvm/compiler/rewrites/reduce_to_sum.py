"""Pass 1: a loop that only adds becomes a sum over a vectorised term, and a loop without a state a vectorised term."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Add, Minimum
from pytensor.scan.op import Scan
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import IncSubtensor, Subtensor

from symsvm._lib.compat import subscripts
from symsvm.graphs.structure import inner_graph

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

    from symsvm._lib.types import Graph

__all__ = ["ScanBody", "added_terms", "final_state", "initial_state", "local_map_to_batch", "local_reduce_to_sum"]


@node_rewriter([Subtensor])
def local_reduce_to_sum(fgraph, node):
    """reduce(lambda x, acc: acc + term(x), X) -> init + sum_i term(x_i), with the term vectorised over i.

    It applies from the inside out, so that a reduce in a reduce becomes a double sum over an (m, m) expression. A loop
    that uses its accumulator in another way, has another state or stops at a condition stays as it is.
    """
    found = final_state(node.outputs[0])
    if found is None:
        return None
    scan, state = found
    body = ScanBody(scan)
    terms = added_terms(body.next_states[state], body.states[state])
    if terms is None:
        return None
    total = initial_state(body.buffers[state])
    for term in terms:
        batch = body.vectorise(term)
        if batch is None:
            return None
        total = total + batch.sum(axis=0)
    return [total.astype(node.outputs[0].dtype)]


@node_rewriter([Scan])
def local_map_to_batch(fgraph, node):
    """map(lambda x: term(x), X) -> the term vectorised over the rows of X, for a Scan without any state.

    A loop with the name "rows" stays a loop: `kernel_matvec` writes it to save memory.
    """
    info = node.op.info
    if info.as_while or info.n_nit_sot != len(node.outputs) or node.op.name == "rows":
        return None
    body = ScanBody(node)
    batches = [body.vectorise(output) for output in body.outputs]
    if None in batches:
        return None
    return [batch.astype(out.dtype) for batch, out in zip(batches, node.outputs, strict=True)]


class ScanBody:
    """The inner graph of a Scan with fresh inputs, and the sequences it runs over.

    Attributes
    ----------
    states, next_states, buffers : list of Graph
        The accumulators, their values after a step, and the outer arrays that hold them.
    outputs : list of Graph
        The outputs of a step without a state.
    carried : set of Graph
        Every input that a step receives from the previous one.
    constants, sequences : dict of Graph to Graph
        The outer variables of the inner inputs that stay the same, and of those that run over rows.
    """

    def __init__(self, scan: Apply) -> None:
        inputs, outputs = inner_graph(scan.op)
        # The inner inputs of all Scans are the same nominal variables; fresh ones separate nested graphs.
        fresh = [v.type(name=v.name) for v in inputs]
        outputs = clone_replace(outputs, dict(zip(inputs, fresh, strict=True)))
        op = scan.op
        self.states, self.next_states, self.buffers = (
            op.inner_sitsot(fresh),
            op.inner_sitsot_outs(outputs),
            op.outer_sitsot(scan.inputs),
        )
        self.outputs = op.inner_nitsot_outs(outputs)
        self.carried = {
            *self.states,
            *op.inner_mitsot(fresh),
            *op.inner_mitmot(fresh),
            *op.inner_untraced_sit_sot(fresh),
        }
        self.constants = dict(zip(op.inner_non_seqs(fresh), op.outer_non_seqs(scan.inputs), strict=True))
        sequences = _without_slices(op.outer_seqs(scan.inputs), scan.inputs[0])
        self.sequences = dict(zip(op.inner_seqs(fresh), sequences, strict=True))

    def vectorise(self, term: Graph) -> Graph | None:
        """Return the term for all rows at once, (n, ...), or None if it cannot be vectorised."""
        from symsvm.compiler.lifting import lift_loops  # which imports this module for its passes

        (term,) = lift_loops([term])
        above = set(ancestors([term]))
        if above & self.carried or any(v.owner and isinstance(v.owner.op, Scan) for v in above):
            return None
        if not above & set(self.sequences):
            return None
        rows = {v: sequence for v, sequence in self.sequences.items() if v in above}
        batch = vectorize_graph(term, rows)
        (batch,) = clone_replace([batch], self.constants)
        return batch  # pyright: ignore[reportReturnType]


def final_state(variable: Graph) -> tuple[Apply, int] | None:
    """Return (scan node, index of the state) if `variable` is the last value of a state of a Scan, else None."""
    node = variable.owner
    index = _constant_index(node)
    if index != -1:
        return None
    (source, *_) = node.inputs
    # A reduce drops the initial value first: out[1:][-1].
    if source.owner is not None and isinstance(source.owner.op, Subtensor):
        idx = subscripts(source.owner)
        if len(idx) != 1 or not isinstance(idx[0], slice) or idx[0].stop is not None or idx[0].step is not None:
            return None
        source = source.owner.inputs[0]
    if source.owner is None or not isinstance(source.owner.op, Scan):
        return None
    scan = source.owner
    info = scan.op.info
    if info.as_while or info.n_mit_mot or info.n_mit_sot:
        return None
    state = scan.outputs.index(source)
    return (scan, state) if state < info.n_sit_sot else None


def _constant_index(node):
    idx = subscripts(node)
    if len(idx) != 1 or isinstance(idx[0], slice):
        return None
    return int(idx[0].data) if isinstance(idx[0], Constant) else idx[0] if isinstance(idx[0], int) else _scalar(idx[0])


def _scalar(index):
    owner = getattr(index, "owner", None)
    if owner is not None and len(owner.inputs) == 1 and isinstance(owner.inputs[0], Constant):
        return int(owner.inputs[0].data)
    return None


def added_terms(total: Graph, accumulator: Graph) -> list[Graph] | None:
    """Return the terms t_1, ... of total = accumulator + t_1 + ...; None if a term uses the accumulator."""
    leaves, terms = [total], []
    seen = 0
    while leaves:
        leaf = leaves.pop()
        if leaf is accumulator:
            seen += 1
        elif (
            leaf.owner is not None and isinstance(leaf.owner.op, Elemwise) and isinstance(leaf.owner.op.scalar_op, Add)
        ):
            leaves += leaf.owner.inputs
        else:
            terms.append(leaf)
    if seen != 1 or accumulator in set(ancestors(terms)):
        return None
    return terms[::-1]


def initial_state(buffer: Graph) -> Graph:
    """Return the initial value of a state from the buffer of its values, whose first row holds it."""
    node = buffer.owner
    if node is not None and isinstance(node.op, IncSubtensor) and node.op.set_instead_of_inc:
        empty, value = node.inputs[:2]
        if empty.owner is not None and isinstance(empty.owner.op, AllocEmpty) and value.type.shape[0] == 1:
            if (
                value.owner is not None
                and isinstance(value.owner.op, DimShuffle)
                and value.owner.op.new_order[0] == "x"
            ):
                source = value.owner.inputs[0]
                if value.owner.op.new_order == ("x", *range(source.ndim)):
                    return source
            return value[0]
    return buffer[0]


def _without_slices(sequences, n_steps):
    """Return the sequences without the slices [0:][:n] with which Scan cuts them to the shortest length.

    Sequences of different lengths then raise an error when they are combined.
    """
    plain = [_unslice(sequence) for sequence in sequences]
    lengths = _minimum_of(n_steps)
    own = [source for source in plain if source is not None]
    if len(own) == len(sequences) and all(any(length is source for source in own) for length in lengths):
        return own
    known = {source.type.shape[0] for source in own}
    if len(own) == len(sequences) and len(known) == 1 and None not in known and _value(n_steps) in known:
        return own
    return sequences


def _unslice(sequence):
    """Return x of x[0:][:n], or None."""
    for _ in range(2):
        node = sequence.owner
        if node is None or not isinstance(node.op, Subtensor):
            break
        idx = subscripts(node)
        if len(idx) != 1 or not isinstance(idx[0], slice) or idx[0].step is not None:
            return None
        start = idx[0].start
        if start is not None and (not isinstance(start, Constant) or int(start.data) != 0):
            return None
        sequence = node.inputs[0]
    return sequence


def _minimum_of(n_steps):
    """Return the arrays whose lengths n_steps is the minimum of; [None] if it is anything else."""
    node = n_steps.owner
    if node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Minimum):
        return [array for part in node.inputs for array in _minimum_of(part)]
    if node is not None and isinstance(node.op, Shape_i) and node.op.i == 0:
        return [_unslice(node.inputs[0])]
    if node is not None and isinstance(node.op, Subtensor) and _constant_index(node) == 0:
        shape = node.inputs[0].owner
        if shape is not None and isinstance(shape.op, Shape):
            return [_unslice(shape.inputs[0])]
    return [None]


def _value(graph):
    return int(graph.data) if isinstance(graph, Constant) else None
