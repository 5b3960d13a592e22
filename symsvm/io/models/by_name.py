"""Names: functions and classes are stored as `module:qualified.name`, and imported only where the user says so."""

import importlib
import sys

from symsvm.io.models.model_file_error import ModelFileError

__all__ = ["importable_name", "imported"]


def importable_name(value):
    """The name that an import finds `value` under, None where there is none (a lambda, a local function, `__main__`).

    >>> importable_name(importable_name), importable_name(lambda x: x)
    ('symsvm.io.models.by_name:importable_name', None)
    """
    module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not module or not qualname or module == "__main__":
        return None
    found = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return f"{module}:{qualname}" if found is value else None


def imported(path, name, trusted):
    """The object of a name that the user trusts.

    An import runs a module's code and the object is called in predictions, so that a file must not choose it.
    """
    if not isinstance(name, str) or name not in trusted:
        shown = str(name)[:200]
        raise ModelFileError(
            path, f"the model calls {shown!r}: if you know that code, load(path, trusted=[{shown!r}]) imports it."
        )
    module, _, qualname = name.partition(":")
    try:
        found = importlib.import_module(module)
        for part in qualname.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ModelFileError(path, f"{name!r} could not be imported: {error}.") from None
    if not callable(found):
        raise ModelFileError(path, f"{name!r} must be a function or a kernel's class, got {type(found).__name__}.")
    return found
