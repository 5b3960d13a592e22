"""The API against its OpenAPI document: random valid and invalid requests generated from it."""

import contextlib
import functools
import json

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import CHECKS
from serving import MODELS, serving

import symsvm

# Too many rows are refused with 413, which schemathesis does not expect of a value that breaks the schema.
REFUSED = ["400", "413", "415", "422"]
CONFIG = {"checks": {"negative_data_rejection": {"expected-statuses": [*REFUSED, "404", "405"]}}}


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    """One line of NDJSON, or bytes as they are."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    """A function of the name of a model: the OpenAPI document of a service for it."""
    with contextlib.ExitStack() as services:

        @functools.cache
        def load(name):
            path = tmp_path_factory.mktemp("models") / "model.symsvm"
            symsvm.save(MODELS[name](), path)
            client = services.enter_context(serving(path, max_rows=20, max_body=100_000))
            config = schemathesis.Config.from_dict(CONFIG)
            return schemathesis.openapi.from_url(f"{client.base_url}/openapi.json", config=config)

        yield load


def holds(case):
    """Run all checks; numbers that are too large for the model may be refused although the schema allows them."""
    answer = case.call()
    too_large = answer.status_code == 422 and answer.json()["error"]["code"] == "too_large"
    excluded = CHECKS.get_by_names(["positive_data_acceptance"]) if too_large else []
    case.validate_response(answer, excluded_checks=excluded)


def explore(schema, examples):
    """Random requests to every operation."""
    for operation in schema.get_all_operations():
        strategy = operation.ok().as_strategy() | operation.ok().as_strategy(
            generation_mode=schemathesis.GenerationMode.NEGATIVE
        )
        run = hypothesis.given(case=strategy)(holds)
        checks = list(hypothesis.HealthCheck)
        hypothesis.settings(max_examples=examples, suppress_health_check=checks)(run)()


@pytest.mark.parametrize("name", ["text", "numbers"])
def test_requests_from_the_document(schema, name):
    explore(schema(name), 5)


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("name", MODELS)
def test_many_requests_from_the_document(schema, name):
    """Minutes: hundreds of requests to each operation of each kind of model."""
    explore(schema(name), 300)
