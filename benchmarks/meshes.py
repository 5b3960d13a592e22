"""The dual of an SVC on a mesh of JAX devices: the same numbers, what is sent, what each device stores, and times.

    python benchmarks/meshes.py [--devices 4] [--points 8003] [--features 20] [--steps 50] [--turns 3]

The devices are virtual ones of this machine's CPU: they share its cores, so the times say what the division into rows
costs and not what more devices gain. One device without a mesh, a mesh of one and a mesh of `--devices` take turns. The
kernel matrix is stored by rows in the first table and computed in tiles in each step in the second.

Columns: the largest difference of W, its gradient and predictions from one device, each relative to the largest entry;
the difference of lam after the steps of FISTA; the collectives of a step, counted in the compiled program; the bytes of
the kernel matrix on each device; seconds of a step, the best of the turns.
"""

import argparse
import os
import re
import time
import warnings

COLLECTIVES = r"= \S+ (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in (("devices", 4), ("points", 8003), ("features", 20), ("steps", 50), ("turns", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={args.devices}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    warnings.filterwarnings("ignore", message=".*max_iter")  # every run ends after `steps`
    compare(args)


def compare(args):
    """Print both tables."""
    import jax
    import numpy as np
    import pytensor
    import pytensor.tensor as pt

    import symsvm
    from symsvm import CSVC, RBF
    from symsvm.compiler import function, value_and_grad
    from symsvm.objectives.dual import W, decisions

    rng = np.random.default_rng(0)
    X = rng.normal(size=(args.points, args.features))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=args.points) > 0.4, 1.0, -1.0)
    kernel = RBF((args.features / 2) ** 0.5)
    meshes = {"no mesh": None}
    for n in dict.fromkeys([1, args.devices]):
        meshes[f"mesh of {n}"] = jax.sharding.Mesh(np.array(jax.devices()[:n]), ("rows",))
    lam, points, labels, rows = pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y"), pt.dmatrix("Z")
    both = value_and_grad(W(lam, points, labels, kernel), lam)
    outputs = [*both, decisions(rows, lam, points, labels, kernel)]
    at = rng.uniform(0, 1, args.points), X, y, X[:1001]
    values = {
        name: function([lam, points, labels, rows], outputs, mode="JAX", mesh=mesh)(*at)
        for name, mesh in meshes.items()
    }
    start = pytensor.shared(np.zeros(args.points), name="lam")
    objective = CSVC(start, pytensor.shared(X, name="X"), pytensor.shared(y, name="y"), 1.0, kernel)
    for title, memory in (("stored", 2**34), ("in tiles", 2**22)):
        print(f"\n{args.points} points, {args.features} features, {args.steps} steps, kernel matrix {title}")
        print(
            f"{'':12}{'W':>9}{'gradient':>10}{'decisions':>11}{'lam':>9}  {'a step sends':24}{'bytes':>12}{'s/step':>9}"
        )
        programs, lams, best = {}, {}, dict.fromkeys(meshes, np.inf)
        for name, mesh in meshes.items():
            programs[name] = symsvm.compile(objective, "accelerated-gradient", mode="JAX", mesh=mesh, memory=memory)
            lams[name] = programs[name].run(max_iter=args.steps).lam
        for _ in range(args.turns):
            for name in meshes:
                best[name] = min(best[name], seconds(programs[name], args.steps))
        for name in meshes:
            pairs = [*zip(values["no mesh"], values[name], strict=True), (lams["no mesh"], lams[name])]
            off = [np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(a).max() for a, b in pairs]
            sent, size = inspect_step(programs[name])
            print(
                f"{name:12}{off[0]:9.1e}{off[1]:10.1e}{off[2]:11.1e}{off[3]:9.1e}  {sent:24}{size:12}{best[name]:9.4f}"
            )


def seconds(program, steps):
    """The seconds of a step, without the preparation before the first."""
    run = program.steps(program.initial_state())
    next(run)
    began = time.perf_counter()
    for _ in range(steps):
        next(run)
    return (time.perf_counter() - began) / steps


def inspect_step(program):
    """What a step sends between devices, as text, and the bytes of stored matrices on each device."""
    import numpy as np

    values = program.functions.to_device(program._values([]))
    state = [*program.initial_state(), *(np.float64(v) for v in program.solver.start())]
    prepare, step = program.functions.compiled(np.asarray(state[0]), values)
    constants = prepare(*values)
    arguments = [*state, *constants, *values, *step.numbers]
    text = step.function.vm.jit_fn.lower(*arguments).compile().as_text()
    found = re.findall(COLLECTIVES, text)
    sent = ", ".join(f"{found.count(name)} {name}" for name in sorted(set(found))) or "nothing"
    return sent, sum(K.addressable_shards[0].data.nbytes for K in constants if K.ndim == 2)


if __name__ == "__main__":
    main()
