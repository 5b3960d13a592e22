"""Mistakes of users: pyright finds each line that is marked; see `tools/type_checks.py`."""

from symsvm import (
    SVC,
    LinearSVC,
    QuadraticProgram,
    Typo,  # mistake
)

SVC(C="hello")  # mistake
SVC(kernl=4)  # mistake
LinearSVC(loss="hnge")  # mistake
QuadraticProgram.c_svc([1, -1])  # mistake
print(Typo)
