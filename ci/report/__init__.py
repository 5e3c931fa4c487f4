"""Verdicts for people: terminal and markdown."""
