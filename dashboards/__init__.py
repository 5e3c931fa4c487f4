"""The static site: pages made from records and gates alone. Changes when a page is added."""

from __future__ import annotations

from dashboards.build import build_site
from dashboards.errors import DashboardError

__all__ = ["DashboardError", "build_site"]
