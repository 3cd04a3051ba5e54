# SPDX-License-Identifier: BSL-1.0
"""Which Python tests with torch run in."""

import importlib.util
import os
import shutil
import subprocess
import sys


def require():
    """Starts the test again in Debian's Python if this one has no torch and that one has; skips it if neither has."""
    if importlib.util.find_spec("torch") is not None:
        return
    system = "/usr/bin/python3"  # has torch if python3-torch is installed
    tried = shutil.which(system) and subprocess.run([system, "-c", "import torch"], capture_output=True, timeout=60).returncode == 0
    if tried and os.path.realpath(sys.executable) != os.path.realpath(system):
        os.execv(system, [system, "-B", *sys.argv])
    print("SKIPPED: no Python with torch (Debian: python3-torch)")
    sys.exit(77)
