"""Tasks: the fits of a search, in groups that share something; a task is what one fold of a group has to do."""

import contextlib
import functools

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, get_tags

from symsvm.estimators import LinearSVC, LinearSVR, NuSVC
from symsvm.model_selection.shared import Session, shared
from symsvm.model_selection.sheet import Sheet, checked, kernel_of

__all__ = ["Alone", "Path", "Prepared", "machine_of", "sheets"]


def machine_of(model):
    """The machine itself: a pipeline's last step."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def sheets(plan, cells, X, folds):
    """The sheets of cells over the same points, and the cells that have none, for their parameters are wrong.

    `folds` are the training points of each fold, by its number.
    """
    found, wrong = {}, []
    for i in cells:
        machine = machine_of(plan.models[i])
        try:
            kernels = _kernels(machine, X, folds)
        except (TypeError, ValueError):  # its fit will say so
            wrong.append(i)
            continue
        for fold, (kernel, points, key) in kernels.items():
            sheet = found.setdefault(key, Sheet(kernel, points, plan.rooms))
            sheet.folds.setdefault(fold, []).append(i)
    return list(found.values()), wrong


def _kernels(machine, X, folds):
    """The kernel of a machine in each fold; gamma="scale" depends on the training points, nothing else does."""
    named = isinstance(machine.kernel, str) and machine.kernel not in ("linear", "precomputed")
    if named and isinstance(machine.gamma, str):
        return {fold: kernel_of(machine, X, train) for fold, train in folds.items()}
    return dict.fromkeys(folds, kernel_of(machine, X, next(iter(folds.values()))))


class Path:
    """The cells of one kernel in one fold: a path of fits over one matrix, each from the last solution."""

    def __init__(self, plan, sheet, fold, rows, y):
        self.is_parallel = sheet.rooms is not None  # else loops over many points use all cores
        self.plan, self.sheet, self.fold, self.rows, self.y = plan, sheet, fold, rows, y

    def run(self, board):
        """Fit the cells, and write on the board what comes of it."""
        models = {i: machine_of(self.plan.models[i]) for i in self.sheet.folds[self.fold]}
        train, test = (index.astype("float64")[:, None] for index in self.rows)
        y_train, y_test = (None if self.y is None else self.y[index] for index in self.rows)

        @functools.cache
        def session():
            return stack.enter_context(
                contextlib.closing(Session(self.sheet.held(), self.rows[0], lambda: board.is_stopped, self.plan.rooms))
            )

        def fit(i):
            machine = shared(models[i], session()).fit(train, y_train)
            return self.plan.score(machine, test, y_test), _status(machine)

        with contextlib.ExitStack() as stack:
            stack.callback(self.sheet.leave)
            for i in sorted(models, key=lambda i: getattr(models[i], "C", 0.0)):
                if not board.is_stopped:
                    board.fit(i, self.fold, functools.partial(fit, i))


class Alone:
    """Cells that are fitted as anybody would, in one fold; linear machines go on from the weights for the last C."""

    is_parallel = False

    def __init__(self, plan, fold, cells):
        self.plan, self.fold, self.cells, self._path = plan, fold, cells, _LinearPath()

    def run(self, board):
        """Fit the cells, and write on the board what comes of it."""
        X, (train, test) = self.plan.X, self.plan.folds[self.fold]
        for i in self.cells:
            if get_tags(self.plan.models[i]).input_tags.pairwise:
                points = X[np.ix_(train, train)], X[np.ix_(test, train)]
            else:
                points = _safe_indexing(X, train), _safe_indexing(X, test)
            self.fit(board, i, self.plan.models[i], points)

    def fit(self, board, i, model, points):
        """Fit one cell to given points."""
        model, (y_train, y_test) = clone(model), self.plan.targets(self.fold)

        def fit():
            machine = machine_of(model)
            with self._path.along(machine):
                model.fit(points[0], y_train)
            if any(solution.stopped == "interrupt" for solution in getattr(machine, "solutions_", ())):
                raise KeyboardInterrupt
            return self.plan.score(model, points[1], y_test), _status(machine)

        if not board.is_stopped:
            board.fit(i, self.fold, fit)


class _LinearPath:
    """Linear machines that differ in C only: each begins at the weights of the last."""

    def __init__(self):
        self._others, self.solutions_ = None, None

    @contextlib.contextmanager
    def along(self, machine):
        """Let the fit inside begin where the last one ended."""
        if not isinstance(machine, (LinearSVC, LinearSVR)):
            yield
            return
        others = joblib.hash({name: value for name, value in machine.get_params().items() if name != "C"})
        if others == self._others:
            machine.warm_start, machine.solutions_ = True, self.solutions_
        self._others = None
        yield
        self._others, self.solutions_ = others, machine.solutions_


class Prepared:
    """Cells with the same steps before the machine, in one fold: the steps are fitted to its training points only."""

    def __init__(self, plan, fold, cells):
        self.plan, self.fold, self.cells = plan, fold, cells
        self.is_parallel = plan.rooms is not None and all(plan.shares[i] for i in cells)

    def run(self, board):
        """Fit the steps, then the cells, and write on the board what comes of it."""
        plan, (train, test) = self.plan, self.plan.folds[self.fold]
        share = [i for i in self.cells if plan.shares[i]]

        def prepare():
            inside, outside = _safe_indexing(plan.X, train), _safe_indexing(plan.X, test)
            for _, step in plan.models[self.cells[0]].steps[:-1]:
                if step is not None and step != "passthrough":
                    step = clone(step)
                    inside = step.fit_transform(inside, plan.targets(self.fold)[0])
                    outside = step.transform(outside)
            both = _stacked(inside, outside)
            if share:
                both = checked(machine_of(plan.models[share[0]]), both, None)
            return inside, outside, both

        try:
            *points, X = prepare()
        except Exception:  # the steps fail: each cell says so
            for i in self.cells:
                board.fit(i, self.fold, prepare)
            return
        rows = np.arange(len(train)), np.arange(len(train), len(train) + len(test))
        y = None if plan.y is None else plan.y[np.concatenate([train, test])]
        found, wrong = sheets(plan, share, X, {self.fold: rows[0]})
        for sheet in found:
            Path(plan, sheet, self.fold, rows, y).run(board)
        alone = Alone(plan, self.fold, [])
        for i in sorted([*wrong, *(i for i in self.cells if not plan.shares[i])]):
            alone.fit(board, i, machine_of(plan.models[i]), points)


def _stacked(A, B):
    return sparse.vstack([A, B], format="csr") if sparse.issparse(A) else np.concatenate([A, B])


def _status(machine):
    """Whether every problem of a fit ended within its tolerance, and at an optimum that tells classes apart."""
    if any(solution.stopped != "tol" for solution in getattr(machine, "solutions_", ())):
        return "not converged"
    return "no margin" if isinstance(machine, NuSVC) and machine.lacks_margin() else "done"
