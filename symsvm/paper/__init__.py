"""The paper in code: the class `SVM_parallel`, and the dictionary between its equations and the code.

The paper is E. Yeung, Support Vector Machines natively implemented in Theano, 2017. `dictionary` holds data only. The
package uses all packages up to `solvers`; `explanation` and the packages after it may import it.
"""

from symsvm.paper.svm_parallel import SVM_parallel

__all__ = ["SVM_parallel"]
