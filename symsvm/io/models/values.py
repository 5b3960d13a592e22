"""Values: what parameters and fitted attributes are made of, as JSON and named arrays, and back.

None, booleans, numbers, strings, lists    themselves
{"$array": name}                           an array of the archive
{"$csr": [kind, rows, columns], "name"}    a sparse matrix, of three arrays
{"$strings": [...], "dtype": ...}          labels that NumPy holds as Python objects
{"$kernel": name, "params": {...}}         a kernel, by the name of its class; "$import" for a user's own
{"$float"}, {"$tuple"}, {"$dict"}          what JSON does not tell apart
"""

import math
import numbers

import numpy as np
import scipy.sparse as sparse

from symsvm._lib.validation import count, is_symbolic
from symsvm.io.models.archive import KINDS
from symsvm.io.models.by_name import importable_name, imported
from symsvm.io.models.model_file_error import ModelFileError
from symsvm.kernels import Kernel, named
from symsvm.kernels.algebra import Power, Product, Scale, Sum

__all__ = ["Decoder", "Encoder"]

_KERNELS = {name: getattr(named, name) for name in named.__all__ if isinstance(getattr(named, name), type)}
_KERNELS |= {cls.__name__: cls for cls in (Power, Product, Scale, Sum)}
del _KERNELS["PairKernel"]  # which a file stores as "pair_kernel"
_CSR = {"csr_matrix": sparse.csr_matrix, "csr_array": sparse.csr_array}
_DEPTH = 64
_POWER = 2**31 - 1


class Encoder:
    """Turns values into JSON, and collects their arrays."""

    def __init__(self, path):
        self.path, self.arrays = path, {}

    def encode(self, value, name):
        """The JSON of a value; its arrays go by `name`."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": str(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if isinstance(value, sparse.csr_matrix | sparse.csr_array):
            parts = (value.data, value.indices, value.indptr)
            for part, array in zip(("data", "indices", "indptr"), parts, strict=True):
                self.arrays[f"{name}.{part}"] = array
            return {"$csr": [type(value).__name__, *map(int, value.shape)], "name": name}
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
            self.path, f"{name}={value!r} cannot be stored: a file holds numbers, strings and arrays; set another one."
        )

    def _array(self, array, name):
        if array.dtype.kind in "OT":
            if array.ndim != 1 or not all(isinstance(item, str) for item in array.tolist()):
                raise ModelFileError(self.path, f"{name} holds Python objects other than strings: make it one type.")
            return {"$strings": array.tolist(), "dtype": "object" if array.dtype.kind == "O" else "StringDType"}
        if array.dtype.kind not in KINDS:
            raise ModelFileError(self.path, f"{name} is of type {array.dtype}, which a file does not hold.")
        self.arrays[name] = array
        return {"$array": name}

    def _kernel(self, kernel, name):
        if is_symbolic_kernel(kernel):
            raise ModelFileError(self.path, f"{kernel!r} has a symbol in it: give it a number before it is saved.")
        cls = type(kernel)
        params = {key: self.encode(v, f"{name}.{key}") for key, v in kernel.get_params(deep=False).items()}
        if isinstance(kernel, named.PairKernel):
            return {"$kernel": "pair_kernel", "params": params}
        known = cls.__name__ if _KERNELS.get(cls.__name__) is cls else {"$import": self._name(cls, name)}
        return {"$kernel": known, "params": params}

    def _name(self, value, name):
        found = importable_name(value)
        if found is None:
            raise ModelFileError(
                self.path,
                f"{name} is {value!r}, and a file holds no code: define it in a module that can be imported, and it "
                "is stored by its name.",
            )
        return found


def is_symbolic_kernel(kernel):
    """Whether a number of the kernel, or of one inside it, is part of a graph."""
    return any(
        is_symbolic_kernel(value) if isinstance(value, Kernel) else is_symbolic(value)
        for value in kernel.get_params(deep=False).values()
    )


class Decoder:
    """Turns JSON and arrays back into values, without trust."""

    def __init__(self, path, arrays, trusted=()):
        self.path, self.arrays, self.trusted = path, arrays, trusted

    def decode(self, value, depth=0):
        """The value of some JSON."""
        if depth > _DEPTH:
            raise ModelFileError(self.path, f"values are nested more than {_DEPTH} deep.")
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        tag = next((key for key in value if key.startswith("$")), None)
        read = getattr(self, f"_{tag[1:]}", None) if tag in _TAGS else None
        if read is None:
            raise ModelFileError(self.path, f"{str(tag)[:80]!r} is no kind of value that this version knows.")
        try:
            return read(value, value[tag], depth + 1)
        except ModelFileError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
            raise ModelFileError(self.path, f"a value {tag[1:]!r} is malformed: {str(error)[:200]}.") from None

    def _array(self, value, name, depth):
        return self.arrays[name]

    def _csr(self, value, header, depth):
        kind, *shape = header
        data, indices, indptr = (self.arrays[f"{value['name']}.{part}"] for part in ("data", "indices", "indptr"))
        if [indices.dtype.kind, indptr.dtype.kind, data.dtype.kind] != ["i", "i", "f"]:
            raise ValueError("indices must be integers, data floats")
        matrix = _CSR[kind]((data, indices, indptr), shape=tuple(shape), copy=False)
        matrix.check_format(full_check=True)
        return matrix

    def _strings(self, value, strings, depth):
        if not all(isinstance(item, str) for item in strings):
            raise ValueError("strings must be strings")
        return np.array(strings, dtype={"object": object, "StringDType": np.dtypes.StringDType()}[value["dtype"]])

    def _float(self, value, text, depth):
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[text]

    def _tuple(self, value, items, depth):
        return tuple(self.decode(item, depth) for item in items)

    def _dict(self, value, items, depth):
        return {self.decode(k, depth): self.decode(v, depth) for k, v in items}

    def _import(self, value, name, depth):
        return imported(self.path, name, self.trusted)

    def _kernel(self, value, name, depth):
        params = {key: self.decode(item, depth) for key, item in value["params"].items()}
        if name == "pair_kernel":
            return self._valid(named.pair_kernel(**params))
        cls = _KERNELS[name] if isinstance(name, str) else self.decode(name, depth)
        if not isinstance(cls, type) or not issubclass(cls, Kernel):
            raise ValueError("an imported kernel must be a class of kernels")
        return self._valid(cls(**params))

    def _valid(self, kernel):
        """The kernel, if its numbers are numbers and the kernels inside it kernels."""
        if type(kernel) in _KERNELS.values():
            for name, value in kernel.get_params(deep=False).items():
                wanted = Kernel if name in ("k1", "k2") else np.ndarray if name == "gram" else numbers.Real
                if not isinstance(value, wanted):
                    raise ValueError(f"{name} of {type(kernel).__name__} must be a {wanted.__name__}")
                if name in ("degree", "n") and count(value, f"{name} of {type(kernel).__name__}", least=1) > _POWER:
                    raise ValueError(f"{name} of {type(kernel).__name__} must be at most {_POWER}")
                if name == "gram" and (value.ndim != 2 or not np.isfinite(value).all()):
                    raise ValueError("gram must be a finite matrix")
        kernel.lift(lambda name, value: value)  # which checks every number
        return kernel


_TAGS = ("$array", "$csr", "$strings", "$float", "$tuple", "$dict", "$import", "$kernel")
