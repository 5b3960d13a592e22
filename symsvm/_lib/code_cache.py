"""The cache of compiled code on disk: it saves time, and can never stop a fit.

Numba stores machine code in files and raises whatever goes wrong with them: a full disk, a file size limit, a directory
that cannot be written, a damaged file. Here such an error is reported once, and the function is compiled without the
cache. Files end with a digest of what is before it, so that damaged machine code is compiled again and never run; two
processes that compile at once write different files, or the same content.

`njit` is `numba.njit` with this cache. `safe_caches` extends it to what PyTensor compiles inside a block.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
import warnings
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symsvm._lib.collection import paused_collection
from symsvm._lib.compat import find_private, replace_base_compiledir, replace_function_cache
from symsvm._lib.compilation import Compilation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["COMPILATION", "njit", "prepare_directories", "report", "safe_caches"]

# What was compiled in this process.
COMPILATION = Compilation()

# Whether functions that are defined now get the cache of this module.
_SAFE = ContextVar("symsvm_safe_caches", default=False)
_REPORTED: list[str] = []


def njit(*args: Any, **options: Any) -> Any:
    """Call `numba.njit`; with `cache=True` no error of the cache reaches the caller.

    Parameters
    ----------
    *args, **options
        Those of `numba.njit`.

    Returns
    -------
    callable
        The compiled function, or the decorator.
    """
    with paused_collection():
        import numba

    options.setdefault("no_cfunc_wrapper", True)
    if len(args) == 1 and callable(args[0]):
        with safe_caches():
            return numba.njit(*args, **options)

    def decorate(function: Callable) -> Callable:
        with safe_caches():
            return numba.njit(*args, **options)(function)

    return decorate


@contextlib.contextmanager
def safe_caches() -> Iterator[None]:
    """Give the functions that are defined inside the block, by PyTensor for example, the cache of this module."""
    _install()
    token = _SAFE.set(True)
    try:
        yield
    finally:
        _SAFE.reset(token)


def report(error: BaseException) -> None:
    """Warn, once in a process, that the cache is not used.

    Parameters
    ----------
    error : exception
        What went wrong.
    """
    if not _REPORTED:
        _REPORTED.append(str(error))
        warnings.warn(
            f"The cache of compiled code is of no use ({type(error).__name__}: {error}), so that functions were "
            "compiled without it. Results are the same, but it takes seconds in each process. Make room on the disk, "
            "or set NUMBA_CACHE_DIR=directory and PYTENSOR_FLAGS=base_compiledir=directory to one that can be written.",
            RuntimeWarning,
            stacklevel=2,
        )


@functools.cache
def prepare_directories() -> None:
    """Give PyTensor a temporary directory for its files if its own cannot be written: it would raise."""
    from pytensor.configdefaults import config

    try:
        (config.base_compiledir / "numba").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        try:
            replace_base_compiledir(_temporary_directory())
        except OSError:  # such as in a container that can write nothing at all
            replace_base_compiledir(_Unwritable(config.base_compiledir))
        report(error)
    if not os.access(config.base_compiledir, os.W_OK | os.X_OK):
        try:
            _ = config.compiledir
        except ValueError as error:
            with contextlib.suppress(OSError):  # only PyTensor's virtual machines need it
                config.compiledir = _temporary_directory()
            report(error)


@functools.cache
def _temporary_directory() -> Path:
    directory = tempfile.TemporaryDirectory(prefix="symsvm-", ignore_cleanup_errors=True)
    _DIRECTORIES.append(directory)  # removed with this object, at the end of the process
    (Path(directory.name) / "numba").mkdir()
    return Path(directory.name)


class _Unwritable(type(Path())):
    """A directory that is not made: PyTensor makes one when it is imported, and what is written to it later fails."""

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        pass


_DIRECTORIES: list[tempfile.TemporaryDirectory] = []


@functools.cache
def _install() -> None:
    """Let Numba ask for a cache here."""
    stock, null, safe = find_private("FunctionCache"), find_private("NullCache"), _cache_class()

    def make(function):
        if not _SAFE.get():
            return stock(function)
        try:
            cache = safe(function)
        except Exception as error:  # no directory that can be written
            report(error)
            return null()
        COMPILATION.watch(function, _root(cache.cache_path))
        return cache

    replace_function_cache(make)
    COMPILATION.install()


def _root(path: str) -> str:
    """The directory that a user knows: that of the package, PyTensor's, or the one in `NUMBA_CACHE_DIR`."""
    from numba import config
    from pytensor.configdefaults import config as pytensor_config

    roots = [vars(config)["CACHE_DIR"], str(Path(__file__).parents[1]), str(pytensor_config.base_compiledir)]
    return next((root for root in roots if root and Path(path).is_relative_to(root)), path)


def _cache_class() -> type:
    base, file_class, runtime = find_private("FunctionCache"), _file_class(), find_private("rtsys")

    class SafeCache(base):
        """Numba's cache of a function, without its errors."""

        def __init__(self, function):
            super().__init__(function)
            locator = self._impl.locator
            self._cache_file = file_class(
                cache_path=self._cache_path,
                filename_base=f"{self._impl.filename_base}.checked",  # Numba's own files have no digest
                source_stamp=locator.get_source_stamp(),
            )

        def load_overload(self, sig, target_context):
            """Load a compiled function. Numba prepares to compile before it does, which takes 0.15 s once."""
            try:
                with paused_collection():
                    runtime.initialize(target_context)
                    return self._load_overload(sig, target_context)
            except Exception as error:
                report(error)

        def save_overload(self, sig, data):
            try:
                super().save_overload(sig, data)
            except Exception as error:
                report(error)

    return SafeCache


def _file_class() -> type:
    class CheckedFile(find_private("IndexDataCacheFile")):
        """An index, and one file for each signature of a function; both end with a digest."""

        def save(self, key, data):
            # The name depends on the key alone: processes that compile other signatures at the same time take others.
            # Numba counts, so that its index may name a file that another process has just written. The text of a key
            # would not do: sparse matrices of float32 and of float64 have the same.
            digest = hashlib.sha256(self._dump(key)).hexdigest()
            name = f"{self._index_name.removesuffix('.nbi')}.{digest[:16]}.nbc"
            self._save_data(name, data)
            try:
                overloads = self._load_index()
            except Exception:
                overloads = {}  # a damaged index is replaced
            overloads[key] = name
            self._save_index(overloads)

        def _load_index(self):
            return super()._load_index() if _is_intact(self._index_path) else {}

        def _load_data(self, name):
            path = os.path.join(self._cache_path, name)
            return super()._load_data(name) if _is_intact(path) else None

        @contextlib.contextmanager
        def _open_for_write(self, filepath):
            temporary = f"{filepath}.{os.urandom(8).hex()}.tmp"
            try:
                with open(temporary, "wb") as file:
                    summed = _Summed(file)
                    yield summed
                    file.write(summed.digest())
                os.replace(temporary, filepath)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise

    return CheckedFile


class _Summed:
    """A file that computes the digest of what is written to it."""

    def __init__(self, file: Any):
        self._file, self._sum = file, hashlib.sha256()

    def write(self, content: bytes) -> int:
        self._sum.update(content)
        return self._file.write(content)

    def digest(self) -> bytes:
        return self._sum.digest()


def _is_intact(path: str) -> bool:
    """Whether a file is there, with the digest of its content; raise ValueError if the content is another."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return False
    size = hashlib.sha256().digest_size
    if hashlib.sha256(content[:-size]).digest() != content[-size:]:
        raise ValueError(f"{path} is damaged")
    return True
