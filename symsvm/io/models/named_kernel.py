"""Named kernels: the four that LIBSVM, ONNX's operators and this library share, by their numbers."""

from symsvm.kernels import RBF, Linear, Polynomial, Sigmoid

__all__ = ["named_kernel"]


def named_kernel(kernel):
    """kernel_type, gamma, degree and coef0 as LIBSVM names them, None for another kernel.

    >>> named_kernel(RBF(sigma=0.5))
    {'kernel_type': 'rbf', 'gamma': 2.0}
    """
    if type(kernel) is Linear:
        return {"kernel_type": "linear"}
    if type(kernel) is RBF:
        return {"kernel_type": "rbf", "gamma": 1 / (2 * float(kernel.sigma) ** 2)}
    if type(kernel) in (Polynomial, Sigmoid):
        numbers = {"gamma": float(kernel.gamma), "coef0": float(kernel.coef0)}
        if type(kernel) is Sigmoid:
            return {"kernel_type": "sigmoid"} | numbers
        return {"kernel_type": "polynomial", "degree": int(kernel.degree)} | numbers
    return None
