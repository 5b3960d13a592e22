"""Run the command line in this process: `run` and its result."""

import json
from typing import NamedTuple

from click.testing import CliRunner

from symsvm.cli import program

__all__ = ["Run", "run"]


class Run(NamedTuple):
    """The exit code and what was written to stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON document on stdout."""
        return json.loads(self.out)


def run(*arguments, code=0, env=None, stdin=None):
    """Run `symsvm ...` with `stdin`; assert that the exit code is `code`, and raise errors that are bugs."""
    result = CliRunner(env=env).invoke(program, [str(a) for a in arguments], stdin, prog_name="symsvm")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return Run(result.exit_code, result.stdout, result.stderr)
