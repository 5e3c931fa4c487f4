"""Correctness: is a stage right, and if not, what do its wrong elements share?"""
