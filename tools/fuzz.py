"""A campaign of the promises: random cases for as long as it is told, what broke kept in out/fuzz.

    python tools/fuzz.py --minutes 60              # two processes; prints problems and worst figures of each promise
    python tools/fuzz.py --minutes 90 --problems 100000  # until so many problems were solved, 90 minutes at most
    python tools/fuzz.py --seed 123 --minutes 1    # the same cases again
    python tools/fuzz.py out/fuzz/123/batches-0-1.json   # one kept case of the seed 123 again

Each promise gets its share of the time. What breaks is made simpler while it still breaks, and written with its seed as
a few lines of JSON; the exit code is 1. At the end a sample of cases is fitted again in other processes, with other
numbers of cores and an empty cache: the bits must be the same.
"""

import argparse
import dataclasses
import importlib
import json
import multiprocessing
import os
import random
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "fuzz"
PROMISES = ROOT / "tests" / "promises"
KEPT = 5  # files of each kind of failure
GRACE = 240  # seconds after which a process that does not end is a failure itself
PAUSE = 300  # seconds between two lines that say how many problems were solved
REPLAYED = 40  # cases that are fitted again elsewhere


def promises():
    """name -> (module, promise), of every test file."""
    for folder in (ROOT, PROMISES.parent, PROMISES):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    modules = [importlib.import_module(path.stem) for path in sorted(PROMISES.glob("test_*.py"))]
    return {module.PROMISE.name: module.PROMISE for module in modules if hasattr(module, "PROMISE")}


def attempt(promise, case):
    """How a case breaks a promise, as (kind, text); None where it holds."""
    from promise import BrokenPromiseError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            promise.check(case, promise.figures)
        except BrokenPromiseError as error:
            return re.sub(r"[-+]?\d[\d.e+-]*", "#", str(error))[:60], str(error)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            return f"{type(error).__name__} {where}", f"{type(error).__name__}: {error} ({where})"
    return None


def work(number, seed, deadline, names, results, done, most=None):
    """Try cases until the deadline, or until so many problems; the promise furthest behind its share comes next.

    `done` is the number of problems that were solved, which all processes share.
    """
    from cases import solved
    from promise import shrunk

    known = {name: promise for name, promise in promises().items() if not names or name in names}
    spent, tried, problems = dict.fromkeys(known, 0.0), Counter(), Counter()
    broken, kinds, sample = Counter(), Counter(), []
    folder = OUT / str(seed)
    running = folder / f"running-{number}.json"
    parent = os.getppid()
    while time.time() < deadline and os.getppid() == parent and not (most and done.value >= most):
        name = min(known, key=lambda each: spent[each] / known[each].share)
        promise, index = known[name], tried[name]
        case = promise.sample(random_state(seed, number, name, index))
        write(running, name, case, "it was running when its process ended", seed)
        start, before = time.perf_counter(), solved()
        found = attempt(promise, case)
        problems[name] += solved() - before
        with done.get_lock():
            done.value += solved() - before
        if found:
            kind, text = found
            broken[name] += 1
            kinds[name, kind] += 1
            if kinds[name, kind] <= KEPT:
                limit = time.time() + 10

                def breaks(simpler, kind=kind, promise=promise, limit=limit):
                    return time.time() < limit and (attempt(promise, simpler) or ("", ""))[0] == kind

                simple = shrunk(case, breaks)
                text = (attempt(promise, simple) or found)[1]
                slug = re.sub(r"\W+", "-", name)
                path = folder / f"{slug}-{number}-{len(list(folder.glob(f'{slug}-{number}-*.json')))}.json"
                write(path, name, simple, text, seed)
                print(f"{name}: {text}\n    {simple}\n    {path.relative_to(ROOT)}", flush=True)
        elif index % 50 == 0 and len(sample) < REPLAYED // 2 and name == "true certificate":
            sample.append(dataclasses.asdict(case))
        tried[name] += 1
        spent[name] += time.perf_counter() - start
    running.unlink(missing_ok=True)
    figures = {name: dict(promise.figures) for name, promise in known.items()}
    results.put((tried, problems, broken, kinds, figures, sample))


def random_state(seed, number, name, index):
    """The random numbers of one case: they depend on nothing else."""
    import numpy as np

    return np.random.default_rng([seed, number, sum(name.encode()), index])


def write(path, name, case, text, seed):
    """Keep a case: the promise, what happened, the fields that are not at their defaults."""
    from cases import Case

    default = Case()
    fields = {k: v for k, v in dataclasses.asdict(case).items() if v != getattr(default, k)}
    kept = {"promise": name, "broken": text, "seed": seed, "case": fields}
    path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def again(path):
    """Try a kept case; whether the promise holds now."""
    from cases import Case

    kept = json.loads(Path(path).read_text(encoding="utf-8"))
    promise, case = promises()[kept["promise"]], Case(**kept["case"])
    found = attempt(promise, case)
    print(f"{kept['promise']}: {case}\n  then: {kept['broken']}\n  now:  {found[1] if found else 'it holds'}")
    return found is None


def replay(sample):
    """Fit cases in other processes; the environments in which bits differ."""
    from cases import Case
    from replay import digest, replayed

    cases, differ = [Case(**fields) for fields in sample], []
    here = [digest(case) for case in cases]
    with tempfile.TemporaryDirectory() as empty:
        environments = {
            "one core": {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            "two cores": {"NUMBA_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
            "an empty cache": {"HOME": empty, "XDG_CACHE_HOME": f"{empty}/cache", "NUMBA_CACHE_DIR": f"{empty}/numba"},
        }
        for name, environment in environments.items():
            there = replayed(cases, **environment)
            other = [str(c) for c, a, b in zip(cases, here, there, strict=True) if a and b and a != b]
            print(f"same bits with {name}: {len(cases) - len(other)} of {len(cases)} cases", *other, sep="\n    ")
            differ += [name] if other else []
    return differ


def report(seed, seconds, results):
    """Print problems and worst figures of each promise; the number of cases that broke."""
    tried, problems, broken, kinds = (sum((r[k] for r in results), Counter()) for k in range(4))
    print(f"\n{'promise':22} {'cases':>8} {'problems':>9} {'broken':>7}   worst figures")
    for name in results[0][4]:
        worst = {}
        for result in results:
            for figure, (value, case) in result[4][name].items():
                if figure not in worst or not value <= worst[figure][0]:
                    worst[figure] = (value, case)
        text = "; ".join(f"{figure} {value:.2g}" for figure, (value, _) in worst.items())
        print(f"{name:22} {tried[name]:8} {problems[name]:9} {broken[name]:7}   {text}")
    for (name, kind), count in kinds.most_common():
        print(f"  {count:6} x {name}: {kind}")
    total, all_broken = sum(problems.values()), sum(broken.values())
    counts = f"{total} problems, {sum(tried.values())} cases, {total / seconds:.0f} problems a second"
    print(f"{counts}; {all_broken} broken (seed {seed})")
    return all_broken


def campaign(minutes, seed, jobs, names, problems=None):
    """Run the processes, gather what they found; whether every promise held."""
    folder = OUT / str(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):  # of the same cases
        old.unlink()
    print(f"tools/fuzz.py --seed {seed} --minutes {minutes:g} --jobs {jobs}", flush=True)
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # a process a core
    context, start = multiprocessing.get_context("spawn"), time.time()
    queue, deadline = context.Queue(), start + 60 * minutes
    done, said = context.Value("q"), start
    workers = [
        context.Process(target=_enter, args=(k, seed, deadline, names, queue, done, problems)) for k in range(jobs)
    ]
    for worker in workers:
        worker.start()
    results, lost = [], 0
    while len(results) + lost < jobs:
        try:
            results.append(queue.get(timeout=1))
        except Exception:  # the queue is empty
            if problems and done.value >= problems:
                deadline = min(deadline, time.time())  # the others have GRACE to end their case
            if time.time() > said + PAUSE:
                said = time.time()
                print(f"{(said - start) / 60:.0f} minutes: {done.value} problems", flush=True)
            late = time.time() > deadline + GRACE
            lost = sum(1 for worker in workers if late or worker.exitcode not in (None, 0))
    for worker in workers:
        if worker.is_alive() and lost:
            worker.kill()
        worker.join()
    for left in folder.glob("running-*.json"):
        kept = left.rename(left.with_name(left.name.replace("running", "stuck")))
        print(f"a process died or did not end: {kept.relative_to(ROOT)}", flush=True)
    broken = report(seed, time.time() - start, results) if results else 0
    sample = [case for result in results for case in result[5]]
    differ = replay(sample) if sample and not names else []
    return not (broken or lost or differ)


def _enter(*arguments):
    promises()  # the path of the modules
    work(*arguments)


def main():
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Try the promises on random cases.")
    parser.add_argument("kept", nargs="*", help="files of out/fuzz to try again")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--problems", type=int, default=None, help="end when so many were solved")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--promise", action="append", default=[], help="only this promise (may be repeated)")
    given = parser.parse_args()
    known = promises()
    if unknown := [name for name in given.promise if name not in known]:
        parser.error(f"no promise {unknown[0]!r}; there are {', '.join(known)}")
    if given.kept:
        sys.exit(sum(again(path) for path in given.kept) < len(given.kept))
    seed = random.randrange(2**32) if given.seed is None else given.seed
    sys.exit(not campaign(given.minutes, seed, given.jobs, given.promise, given.problems))


if __name__ == "__main__":
    main()
