"""What a symbolic W is: `read` finds the sum over pairs and the sum over points in it.

`terms` multiplies W out, `reading` sorts the terms, and `pair_expression` finds the expression of two rows in a matrix
of pairs. Evaluation and solvers may import it.
"""

from symsvm.compiler.reading.pair_expression import PairExpression
from symsvm.compiler.reading.reading import Reading, is_readable, leaves_of, read
from symsvm.compiler.reading.terms import UnreadableError

__all__ = ["PairExpression", "Reading", "UnreadableError", "is_readable", "leaves_of", "read"]
