"""How many random examples a test tries: few and the same each time in the suite, many and new ones in `make fuzz`."""

from hypothesis import settings

__all__ = ["FACTOR", "examples"]

FACTOR = 20

settings.register_profile("suite", derandomize=True, deadline=None)
# What fails is kept in .hypothesis and tried again first; `print_blob` says how to repeat it anywhere.
settings.register_profile("fuzz", deadline=None, print_blob=True)


def examples(few):
    """The number of examples of a test that tries `few` in the suite."""
    return few * FACTOR if settings.get_current_profile_name() == "fuzz" else few
