"""What all tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def test_no_property_test_fails_because_a_machine_is_busy():
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
