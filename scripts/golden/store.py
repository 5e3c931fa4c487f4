"""The file of recorded vectors: one compressed ``.npz`` that holds bits and their description."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from scripts.golden.model import Bits, Form, InputSet, Origin, Recording, Rule, unsigned

VERSION = 1


def save(path: Path, recording: Recording) -> None:
    """Write a recording.

    Each array lies in the file as planes of equal byte number, which compress better than words.
    """
    described = {
        "version": VERSION,
        "origin": asdict(recording.origin),
        "forms": [_described(form) for form in recording.forms],
        "sets": {
            name: {
                "kinds": given.kinds,
                "threads": given.threads,
                "cells": [(cell.itemsize, cell.shape[1]) for cell in given.cells],
            }
            for name, given in recording.sets.items()
        },
        "refused": recording.refused,
    }
    inputs = (a for given in recording.sets.values() for a in (*given.columns, *given.cells))
    results = (a for form in recording.forms for a in recording.results[form.name])
    np.savez_compressed(
        path,
        description=np.frombuffer(json.dumps(described).encode(), np.uint8),
        inputs=_planes(inputs),
        results=_planes(results),
    )


def load(path: Path) -> Recording:
    """Read a recording.

    Raises:
        ValueError: The file is not one of this version, or its parts do not fit each other.
    """
    with np.load(path, allow_pickle=False) as file:
        described = json.loads(file["description"].tobytes())
        if described["version"] != VERSION:
            raise ValueError(
                f"{path}: expected version {VERSION}, got {described['version']} (record it anew)"
            )
        inputs, results = _Reader(file["inputs"]), _Reader(file["results"])
    sets = {name: _input_set(inputs, about) for name, about in described["sets"].items()}
    forms = tuple(_form(about) for about in described["forms"])
    found = {form.name: tuple(_results(results, form, sets[form.inputs])) for form in forms}
    if inputs.left or results.left:
        raise ValueError(f"{path}: {inputs.left + results.left} bytes too many (record it anew)")
    return Recording(
        origin=Origin(**described["origin"]),
        forms=forms,
        sets=sets,
        results=found,
        refused=tuple((name, words) for name, words in described["refused"]),
    )


def _described(form: Form) -> dict[str, Any]:
    """Return a form without what is as in most forms."""
    return {name: value for name, value in asdict(form).items() if value not in (0, 0.0, ())}


def _form(about: Mapping[str, Any]) -> Form:
    known = {"outputs": (), **about, "rule": Rule(about["rule"])}
    lists = {name: tuple(known.get(name, ())) for name in ("outputs", "spaces")}
    return Form(**{**known, **lists})


def _input_set(reader: _Reader, about: Mapping[str, Any]) -> InputSet:
    threads = int(about["threads"])
    return InputSet(
        kinds=tuple(about["kinds"]),
        columns=tuple(reader.take(unsigned(kind), (threads,)) for kind in about["kinds"]),
        cells=tuple(
            reader.take(np.dtype(f"u{size}"), (threads, words)) for size, words in about["cells"]
        ),
    )


def _results(reader: _Reader, form: Form, given: InputSet) -> Iterator[Bits]:
    for kind in form.outputs:
        yield reader.take(unsigned(kind), (given.threads,))
    for cell in given.cells:
        yield reader.take(cell.dtype, cell.shape)


def _planes(arrays: Iterable[Bits]) -> Bits:
    parts = [
        np.ascontiguousarray(a).view(np.uint8).reshape(-1, a.itemsize).T.reshape(-1) for a in arrays
    ]
    return np.concatenate([np.zeros(0, np.uint8), *parts])


class _Reader:
    """Takes arrays from a file's bytes in the order in which they were written."""

    def __init__(self, data: Bits) -> None:
        self._data, self._position = data, 0

    @property
    def left(self) -> int:
        """Return how many bytes have not been taken."""
        return len(self._data) - self._position

    def take(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Bits:
        """Return the next array.

        Raises:
            ValueError: The bytes end before it does.
        """
        count = int(np.prod(shape)) * dtype.itemsize
        if count > self.left:
            raise ValueError(f"expected {count} more bytes, got {self.left} (record it anew)")
        planes = self._data[self._position : self._position + count]
        self._position += count
        words = np.ascontiguousarray(planes.reshape(dtype.itemsize, -1).T)
        return words.view(dtype).reshape(shape)
