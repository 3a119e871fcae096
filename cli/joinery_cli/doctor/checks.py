"""All checks, in the order in which they are made."""

from joinery_cli.doctor import allowed, configured, health, installed, reachable

CHECKS = (*installed.CHECKS, *reachable.CHECKS, *allowed.CHECKS, *configured.CHECKS, *health.CHECKS)
