"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# A time limit an example measures how busy the machine is, not what is tested.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
