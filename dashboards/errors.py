"""What can go wrong while a site is built. Changes when a new way to fail is found."""

from __future__ import annotations


class DashboardError(Exception):
    """Base of everything this room raises on purpose."""


class SiteFolderError(DashboardError):
    """The folder of the site cannot be written."""


class TemplateValueError(DashboardError):
    """A template was given something that is not formatted text."""
