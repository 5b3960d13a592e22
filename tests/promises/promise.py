"""A promise: a check of one case, the cases to try it on, and the worst figures that it saw."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from cases import Case, build, draw, fit, make

__all__ = ["FEW", "BrokenPromiseError", "Figures", "Promise", "demand", "shrunk", "started"]

# Kernels of the examples in the suite: one of each way to compute, and few programs to compile.
FEW = ("linear", "rbf", "laplacian", "sum")


class BrokenPromiseError(AssertionError):
    """A promise does not hold for a case."""


def demand(condition, sentence):
    """Raise `BrokenPromiseError` with the sentence unless the condition holds."""
    if not condition:
        raise BrokenPromiseError(sentence)


class Figures(dict):
    """name -> the largest value that was noted, and its case."""

    def note(self, name, value, case):
        """Keep a value if it is the largest of its name."""
        value = float(value)
        if name not in self or not value <= self[name][0]:
            self[name] = (value, str(case))


@dataclass(frozen=True)
class Promise:
    """`check(case, figures)` raises where the promise is broken; `sample(rng)` draws a case for it."""

    name: str
    check: Callable
    sample: Callable = draw
    fixed: tuple = ()
    examples: int = 8
    share: float = 1.0  # of the time of a campaign
    figures: Figures = field(default_factory=Figures)

    def example(self, number):
        """The cases of the suite: the fixed ones, then drawn ones, the same each time."""
        if number < len(self.fixed):
            return self.fixed[number]
        return self.sample(np.random.default_rng([20, number]), kernels=FEW)

    @property
    def numbers(self):
        """The numbers of the examples in the suite."""
        return range(len(self.fixed) + self.examples)

    def keep(self, case):
        """Check a case; what breaks says so with the case, ready to be pasted."""
        try:
            self.check(case, self.figures)
        except BrokenPromiseError as error:
            raise BrokenPromiseError(f"{self.name}: {error}\n  {case}") from None


def started(case, **changes):
    """The data of a case and the outcome of its fit."""
    data = make(case)
    return data, fit(build(case, **changes), data.X, data.y, data.weight)


def shrunk(case, breaks, attempts=60):
    """A simpler case that still breaks: fields at their defaults, fewer points, rounder numbers."""
    default = Case()
    for f in dataclasses.fields(case):
        if f.name in ("seed", "m", "d") or getattr(case, f.name) == getattr(default, f.name):
            continue
        if f.name == "kernel" and case.is_linear:
            continue
        simpler = case.but(**{f.name: getattr(default, f.name)})
        if attempts > 0 and breaks(simpler):
            case = simpler
        attempts -= 1
    for name, least in (("m", 3), ("d", 1)):
        while attempts > 0 and getattr(case, name) > least:
            attempts -= 1
            fewer = max(least, getattr(case, name) * 2 // 3)
            if not breaks(case.but(**{name: fewer})):
                break
            case = case.but(**{name: fewer})
    return case
