#!/usr/bin/env python3
"""The scenarios of e2e, run inside the namespaces that tests/e2e/run made. Prints TAP and `N passed, N failed`."""
