"""The paper in code: `SVM_parallel`, and the dictionary of symbols and equations."""

from symsvm.paper.svm_parallel import SVM_parallel

__all__ = ["SVM_parallel"]
