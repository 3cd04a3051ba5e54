# SPDX-License-Identifier: BSL-1.0
"""The two ways in which a run ends early."""


class BadInput(Exception):
    """What was given cannot be run: one line that names file, place, what was found and what was expected."""


class CannotGoOn(Exception):
    """Training stopped: a worker is lost and its work cannot be taken over, or somebody waited too long."""
