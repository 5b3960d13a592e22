"""Parameters and fitted attributes as JSON values and named arrays, and back.

None, booleans, numbers, strings, lists    themselves
{"$array": name}                           an array of the archive
{"$csr": [kind, rows, columns], "name"}    a sparse matrix, of three arrays
{"$strings": [...], "dtype": ...}          strings in an array of Python objects
{"$kernel": name, "params": {...}}         a kernel, by the name of its class; "$import" for a user's own
{"$float"}, {"$tuple"}, {"$dict"}          values that JSON has no syntax for

Functions and classes are stored as `module:qualified.name`, and imported only if the user trusts that name.
"""

from __future__ import annotations

import importlib
import math
import numbers
import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sparse

from symsvm._lib.validation import count, is_symbolic
from symsvm.io.file_errors import ModelFileError
from symsvm.io.models.archive import ARRAY_KINDS
from symsvm.kernels import Kernel, named
from symsvm.kernels.algebra import Power, Product, Scale, Sum

if TYPE_CHECKING:
    from collections.abc import Collection

    from symsvm._lib.types import Array, Path

__all__ = ["Decoder", "Encoder", "importable_name"]

_KERNELS = {name: getattr(named, name) for name in named.__all__ if isinstance(getattr(named, name), type)}
_KERNELS |= {cls.__name__: cls for cls in (Power, Product, Scale, Sum)}
del _KERNELS["PairKernel"]  # a file stores it as "pair_kernel"
_CSR = {"csr_matrix": sparse.csr_matrix, "csr_array": sparse.csr_array}
_TAGS = ("$array", "$csr", "$strings", "$float", "$tuple", "$dict", "$import", "$kernel")
_MAX_DEPTH = 64  # of nested values
_MAX_POWER = 2**31 - 1  # of a polynomial kernel


class Encoder:
    """Encodes values as JSON and collects their arrays by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.arrays: dict[str, Array] = {}

    def encode(self, value: Any, name: str) -> Any:
        """The JSON of a value; the names of its arrays begin with `name`."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": str(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if isinstance(value, sparse.csr_matrix | sparse.csr_array):
            rows, columns = cast("tuple[int, int]", value.shape)
            parts = (value.data, value.indices, value.indptr)
            for part, array in zip(("data", "indices", "indptr"), parts, strict=True):
                self.arrays[f"{name}.{part}"] = array
            return {"$csr": [type(value).__name__, int(rows), int(columns)], "name": name}
        if isinstance(value, list | tuple):
            items = [self.encode(item, f"{name}.{i}") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, dict):
            return {"$dict": [[self.encode(k, name), self.encode(v, f"{name}.{k}")] for k, v in value.items()]}
        if isinstance(value, Kernel):
            return self._kernel(value, name)
        if callable(value):
            return {"$import": self._name(value, name)}
        raise ModelFileError(
            self.path,
            f"{name}={value!r} cannot be stored: a file holds numbers, strings and arrays; set {name} to one of them.",
        )

    def _array(self, array: Array, name: str) -> dict[str, Any]:
        if array.dtype.kind in "OT":
            if array.ndim != 1 or not all(isinstance(item, str) for item in array.tolist()):
                raise ModelFileError(
                    self.path, f"{name} holds Python objects other than strings: convert it to one type."
                )
            return {"$strings": array.tolist(), "dtype": "object" if array.dtype.kind == "O" else "StringDType"}
        if array.dtype.kind not in ARRAY_KINDS:
            raise ModelFileError(self.path, f"{name} has the type {array.dtype}, which a file cannot hold.")
        self.arrays[name] = array
        return {"$array": name}

    def _kernel(self, kernel: Kernel, name: str) -> dict[str, Any]:
        if _is_symbolic_kernel(kernel):
            raise ModelFileError(self.path, f"{kernel!r} has a symbolic parameter: set it to a number before you save.")
        cls = type(kernel)
        params = {}
        for key, value in kernel.get_params(deep=False).items():
            if key in kernel.per_feature and np.ndim(value):
                value = np.asarray(value, dtype="float64")  # of any sequence
            params[key] = self.encode(value, f"{name}.{key}")
        if isinstance(kernel, named.PairKernel):
            return {"$kernel": "pair_kernel", "params": params}
        known = cls.__name__ if _KERNELS.get(cls.__name__) is cls else {"$import": self._name(cls, name)}
        return {"$kernel": known, "params": params}

    def _name(self, value: Any, name: str) -> str:
        found = importable_name(value)
        if found is None:
            raise ModelFileError(
                self.path,
                f"{name} is {value!r}, and a file holds no code: define it in a module that can be imported, so that "
                "its name can be stored.",
            )
        return found


def _is_symbolic_kernel(kernel: Kernel) -> bool:
    """Whether a parameter of the kernel, or of one inside it, is part of a graph."""
    return any(
        _is_symbolic_kernel(value) if isinstance(value, Kernel) else is_symbolic(value)
        for value in kernel.get_params(deep=False).values()
    )


class Decoder:
    """Decodes JSON and arrays, without trust."""

    def __init__(self, path: Path, arrays: dict[str, Array], trusted: Collection[str] = ()) -> None:
        self.path, self.arrays, self.trusted = path, arrays, trusted

    def decode(self, value: Any, depth: int = 0) -> Any:
        """The value of some JSON."""
        if depth > _MAX_DEPTH:
            raise ModelFileError(self.path, f"values are nested more than {_MAX_DEPTH} deep.")
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        tag = next((key for key in value if key.startswith("$")), None)
        if tag is None or tag not in _TAGS:
            raise ModelFileError(self.path, f"{str(tag)[:80]!r} is not a kind of value that this version knows.")
        try:
            return getattr(self, f"_{tag[1:]}")(value, value[tag], depth + 1)
        except ModelFileError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
            raise ModelFileError(self.path, f"a value {tag[1:]!r} is malformed: {str(error)[:200]}.") from None

    def _array(self, value: dict, name: Any, depth: int) -> Array:
        return self.arrays[name]

    def _csr(self, value: dict, header: Any, depth: int) -> Any:
        kind, *shape = header
        data, indices, indptr = (self.arrays[f"{value['name']}.{part}"] for part in ("data", "indices", "indptr"))
        rows, columns = shape
        if not all(array.dtype in ("int32", "int64") and array.ndim == 1 for array in (indices, indptr)):
            raise ValueError("indices must be integers")
        if data.dtype not in ("float32", "float64") or data.shape != indices.shape:
            raise ValueError("data must be as many floats as there are indices")
        # SciPy's own check leaves out a matrix whose last pointer is 0.
        ends = count(rows, "rows") + 1 == len(indptr) and indptr[0] == 0 and indptr[-1] == len(indices)
        if not (ends and (np.diff(indptr) >= 0).all()):
            raise ValueError("the pointers of rows must rise from 0 to the number of entries")
        if len(indices) and not 0 <= indices.min() <= indices.max() < count(columns, "columns"):
            raise ValueError("an index is not that of a column")
        matrix = _CSR[kind]((data, indices, indptr), shape=(rows, columns), copy=False)
        matrix.check_format(full_check=True)
        return matrix

    def _strings(self, value: dict, strings: Any, depth: int) -> Array:
        if not all(isinstance(item, str) for item in strings):
            raise ValueError("strings must be strings")
        return np.array(strings, dtype={"object": object, "StringDType": np.dtypes.StringDType()}[value["dtype"]])

    def _float(self, value: dict, text: Any, depth: int) -> float:
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[text]

    def _tuple(self, value: dict, items: Any, depth: int) -> tuple:
        return tuple(self.decode(item, depth) for item in items)

    def _dict(self, value: dict, items: Any, depth: int) -> dict:
        return {self.decode(k, depth): self.decode(v, depth) for k, v in items}

    def _import(self, value: dict, name: Any, depth: int) -> Any:
        return _import_trusted(self.path, name, self.trusted)

    def _kernel(self, value: dict, name: Any, depth: int) -> Kernel:
        params = {key: self.decode(item, depth) for key, item in value["params"].items()}
        if name == "pair_kernel":
            return self._checked(named.pair_kernel(**params))
        cls = _KERNELS[name] if isinstance(name, str) else self.decode(name, depth)
        if not isinstance(cls, type) or not issubclass(cls, Kernel):
            raise ValueError("an imported kernel must be a class of kernels")
        return self._checked(cls(**params))

    def _checked(self, kernel: Kernel) -> Kernel:
        """The kernel, after a check of the types of its parameters and of the kernels inside it."""
        if type(kernel) in _KERNELS.values():
            params: dict[str, Any] = kernel.get_params(deep=False)
            for name, value in params.items():
                wanted: Any = Kernel if name in ("k1", "k2") else np.ndarray if name == "gram" else numbers.Real
                if not isinstance(value, wanted) and not (name in kernel.per_feature and isinstance(value, np.ndarray)):
                    raise ValueError(f"{name} of {type(kernel).__name__} must be a {wanted.__name__}")
                if name in ("degree", "n") and count(value, f"{name} of {type(kernel).__name__}", least=1) > _MAX_POWER:
                    raise ValueError(f"{name} of {type(kernel).__name__} must be at most {_MAX_POWER}")
                if name == "gram" and (value.ndim != 2 or not np.isfinite(value).all()):
                    raise ValueError("gram must be a finite matrix")
        kernel.lift(lambda name, value: value)  # checks every number
        return kernel


# ---- names of functions and classes


def importable_name(value: Any) -> str | None:
    """The name `module:qualified.name` of a function or class, None where an import cannot find it.

    A lambda, a local function and a function of `__main__` have none.

    >>> importable_name(importable_name), importable_name(lambda x: x)
    ('symsvm.io.models.values:importable_name', None)
    """
    module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not module or not qualname or module == "__main__":
        return None
    found = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return f"{module}:{qualname}" if found is value else None


def _import_trusted(path: Path, name: Any, trusted: Collection[str]) -> Any:
    """Import the object of a name that the user trusts.

    An import runs the code of a module, and predictions call the object: a file must not choose it.
    """
    if not isinstance(name, str) or name not in trusted:
        quoted = str(name)[:200]
        raise ModelFileError(
            path, f"the model calls {quoted!r}: if you trust that code, load(path, trusted=[{quoted!r}]) imports it."
        )
    module, _, qualname = name.partition(":")
    try:
        found = importlib.import_module(module)
        for part in qualname.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ModelFileError(path, f"{name!r} could not be imported: {error}.") from None
    if not callable(found):
        raise ModelFileError(path, f"{name!r} must be a function or a kernel class, got {type(found).__name__}.")
    return found
