"""How many random examples a test tries: few and the same each time in the suite, many and new ones in `make fuzz`."""

from hypothesis import settings
from hypothesis.internal.conjecture import providers

__all__ = ["FACTOR", "examples", "fix_examples"]

FACTOR = 20

settings.register_profile("suite", derandomize=True, deadline=None)
# What fails is kept in .hypothesis and tried again first; `print_blob` says how to repeat it anywhere.
settings.register_profile("fuzz", deadline=None, print_blob=True)


def fix_examples():
    """Let the examples of the suite depend on nothing but the tests.

    Newer versions of Hypothesis also try numbers and texts that stand in the modules that are loaded by then: another
    order of the tests, or another number in the package, would change what is tried. No setting turns that off.
    """
    if hasattr(providers, "is_local_module_file"):
        providers.is_local_module_file = lambda path: False


def examples(few):
    """The number of examples of a test that tries `few` in the suite."""
    return few * FACTOR if settings.get_current_profile_name() == "fuzz" else few
