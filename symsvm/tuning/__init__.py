"""The search for parameters by cross-validation: `tune` shares Gram matrices, compiled programs and solutions."""

from symsvm.tuning.board import Step
from symsvm.tuning.result import Tuning
from symsvm.tuning.search import tune

__all__ = ["Step", "Tuning", "tune"]
