"""The description of the API holds whatever is sent: schemathesis asks by it."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from service.serving import applications, served, started
from service.test_api import ALLOWED


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with served(started(f"sqlite:///{tmp_path_factory.mktemp('schema')}/x.db")) as client:
        client.decide(applications(0, 30))
        yield client


@pytest.fixture(scope="module")
def schema(client):
    headers = {"Authorization": f"Bearer {client.keys['audit']}"}
    return schemathesis.openapi.from_url(
        f"http://127.0.0.1:{client.port}/openapi.json", headers=headers
    )


lazy = schemathesis.pytest.from_fixture("schema")


@lazy.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_breaks_the_service(case, client):
    operation = case.operation.method.upper(), case.operation.path  # the case may have another one
    (role, *_) = sorted(ALLOWED[operation])
    headers = {"Authorization": f"Bearer {client.keys[role]}"}
    # An id that fits the schema may be unknown.
    case.call_and_validate(headers=headers, excluded_checks=[positive_data_acceptance])
