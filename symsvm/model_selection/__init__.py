"""The search for parameters by cross-validation: `tune` shares Gram matrices, compiled programs and solutions."""

from symsvm.model_selection.board import Step
from symsvm.model_selection.result import Tuning
from symsvm.model_selection.search import tune

__all__ = ["Step", "Tuning", "tune"]
