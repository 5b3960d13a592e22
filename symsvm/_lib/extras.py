"""Optional packages: imported where they are used, with a sentence where they are missing."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["import_extra"]


def import_extra(name: str, user: str) -> ModuleType:
    """Return an optional package, or raise ImportError with the extra that installs it.

    Parameters
    ----------
    name : str
        The package, which the extra is named after.
    user : str
        What needs it.

    Returns
    -------
    module
        The package.
    """
    if importlib.util.find_spec(name) is None:
        raise ImportError(f"{user} needs {name}, which is not installed: pip install 'symsvm[{name}]'.")
    return importlib.import_module(name)
