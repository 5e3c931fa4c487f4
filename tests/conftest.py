"""What holds for every test."""

from __future__ import annotations

import signal

from hypothesis import settings

# A time limit an example measures how busy the machine is, not what is tested. The same examples in
# every run: what fails in CI fails for whoever looks into it.
settings.register_profile("any machine", deadline=None, derandomize=True)
settings.load_profile("any machine")

# A shell starts background jobs with Ctrl-C ignored, and what the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
