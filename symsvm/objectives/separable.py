from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SeparableTerm:
    value: Any
    gradient: Any
    curvature: Any
