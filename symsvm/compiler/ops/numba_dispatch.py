"""The Ops of `kernel_ops` on Numba: the generated loops, called from PyTensor's compiled graphs."""

import hashlib

import numba
import numpy as np

from symsvm._lib.compat import numba_njit, numba_source, on_numba
from symsvm.compiler.ops.kernel_ops import MISFIT, KernelFeatures, KernelGram, KernelMatvec
from symsvm.compiler.ops.tile_source import parameters
from symsvm.compiler.ops.tiles import compile_tiles

__all__ = ["loops"]

_ALLOCATE = {
    "block": ["out = np.empty((m, n), dtype)", "q = np.empty((0, 0), dtype)"],
    "matvec": ["out = np.zeros((m, {p}), np.float64)", "q = np.ascontiguousarray({q}.T)"],
    "features": ["out = np.zeros((m, A{c}.shape[1]), np.float64)", "q = np.empty((0, 0), dtype)"],
}


def loops(op):
    """The compiled loops of an Op, and their key."""
    f = getattr(op, "f", None)
    return compile_tiles(op.epilogue, op.hs, op.n_rows, op.n_columns, op.n_numbers, op.want, op.kinds, f)


def _misfits(op, names):
    """Conditions under which the loops would read beyond an array."""
    for c, (h, kind) in enumerate(zip(op.hs, op.kinds, strict=True)):
        for name, length in ((f"A{c}", "m"), (f"B{c}", "n")):
            yield f"{name}.shape[0] != {length}" if name in names else f"{name}_start.shape[0] != {length} + 1"
        widths = [f"{name}.shape[1]" for name in (f"A{c}", f"B{c}") if name in names]
        widths += [f"w{c}_{i}.shape[0]" for i in range(len(h.inputs) - 2)] + [f"d{c}.item()"] * ("csr" in kind)
        yield from (f"{width} != {widths[-1]}" for width in widths[:-1])
    yield from (f"u{i}.shape[0] != m" for i in range(op.n_rows))
    yield from (f"v{i}.shape[0] != n" for i in range(op.n_columns))
    if op.want == "matvec":
        yield "given.shape[0] != n"


@on_numba(KernelFeatures, KernelGram, KernelMatvec)
def numba_funcify_pairs(op, node, **kwargs):
    """Allocate, make contiguous what is not, and run the loops."""
    # What is loaded from the cache calls the loops without a word to Numba, whose threads must be there by then.
    numba.get_num_threads()
    tiles, key = loops(op)
    weights = [len(h.inputs) - 2 for h in op.hs]
    names = parameters(op.kinds, weights, op.n_rows, op.n_columns, op.n_numbers)
    vector = op.want == "matvec" and node.inputs[-1].ndim == 1
    args = [name if v.ndim else f"{name}.item()" for name, v in zip(names, node.inputs, strict=False)]
    args = [f"np.ascontiguousarray({name})" if v.ndim else name for name, v in zip(args, node.inputs, strict=False)]
    left, right = op.kinds[0]
    lines = [f"def pairs({', '.join([*names, *['given'] * (op.want == 'matvec')])}):"]
    lines += [f"m = {'A0.shape[0]' if left == 'dense' else 'A0_start.shape[0] - 1'}"]
    lines += [f"n = {'B0.shape[0]' if right == 'dense' else 'B0_start.shape[0] - 1'}"]
    lines += [f"if {' or '.join(_misfits(op, names))}:", f"    raise ValueError({MISFIT!r})"]
    # A vector is a matrix of one column.
    given, p = ("given.copy().reshape((n, 1))", "1") if vector else ("given", "given.shape[1]")
    c = op.f[0] if op.want == "features" else ""
    lines += [line.format(q=given, p=p, c=c) for line in _ALLOCATE[op.want]]
    lines += [f"tiles(np.arange(m), np.arange(n), {', '.join(args)}, q, out)"]
    lines += [f"return out{'[:, 0].copy()' if vector else ''}.astype(dtype)"]
    scope = {"np": np, "tiles": tiles, "dtype": numba.from_dtype(np.dtype(op.dtype)), "__name__": __name__}
    source = "\n    ".join(lines) + "\n"
    pairs = numba_source(source, "pairs", scope)
    return numba_njit(pairs), hashlib.sha256((source + key).encode()).hexdigest()
