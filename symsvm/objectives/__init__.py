"""Objectives: the problems, each with its feasible set and its certificate."""

from symsvm.objectives.dual import CSVC
from symsvm.objectives.objective import Objective
from symsvm.objectives.platt import Platt

__all__ = ["CSVC", "Objective", "Platt"]
