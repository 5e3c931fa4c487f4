"""Global and constant memory: one region per buffer, with exact bounds.

Addresses of regions are 64 GiB apart, so that an address tells its buffer however wrong it is.
Windows of the address space hold shared and local memory for generic addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.sink import UNINITIALISED_GLOBAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ci.simulator.forms import Array, Mask
    from ci.simulator.lanes import Lanes

SHARED_WINDOW = 1 << 40
LOCAL_WINDOW = 1 << 41
GLOBAL_WINDOW = 1 << 44

ALIGNMENT_BYTES = 256
"""What an allocator aligns a buffer to."""

_SPACING_SHIFT = 36
_FIRST_VARIABLE = 1 << 16
"""Number of the first region that is no argument: above that of any argument."""
_MIDDLE = 1 << _SPACING_SHIFT - 1


class Region:
    """A buffer or module variable at its address."""

    def __init__(self, name: str, number: int, content: Array, misalignment_bytes: int) -> None:
        """Copy the content to where its alignment is that of its address.

        Args:
            name: For hazards.
            number: Which of the regions it is.
            content: (n,) bytes.
            misalignment_bytes: The address of the first byte modulo 256.
        """
        self.name = name
        self.size_bytes = content.size
        self.lead_bytes = misalignment_bytes
        self.address = GLOBAL_WINDOW + (number << _SPACING_SHIFT) + _MIDDLE + misalignment_bytes
        end = misalignment_bytes + content.size
        storage = np.zeros(-(-(end + 1) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES, np.uint8)
        self.content = storage[misalignment_bytes:end]
        self.content[:] = content
        self.watched = False
        """Whether somebody wants to know of accesses."""
        self._storage = storage
        self._words: dict[np.dtype[Any], Array] = {}
        self._written: Array | None = None

    def words(self, dtype: np.dtype[Any]) -> Array:
        """Return the storage, ``lead_bytes`` before the content included, as ``dtype``."""
        found = self._words.get(dtype)
        if found is None:
            found = self._words[dtype] = self._storage.view(dtype)
        return found

    def begin_unwritten(self, written: Array) -> None:
        """Follow which bytes of the content were written, beginning with these."""
        self._written = np.zeros(len(self._storage), np.bool_)
        end = self.lead_bytes + self.size_bytes
        self._written[self.lead_bytes : end] = written

    def written(self) -> Array | None:
        """Return which bytes of the content were written; None: all of them."""
        if self._written is None:
            return None
        return self._written[self.lead_bytes : self.lead_bytes + self.size_bytes]

    def note_written(self, offset: Array, mask: Mask, width_bytes: int) -> None:
        """Take in a store of ``width_bytes`` a lane at offsets from the start of the storage."""
        if self._written is not None:
            for byte in range(width_bytes):
                scatter(self._written, offset + byte, np.ones((1, 1), np.bool_), mask)

    def unwritten(self, offset: Array, width_bytes: int) -> Array | None:
        """Return at which of the offsets something was not written; None: nowhere."""
        if self._written is None:
            return None
        known = self._written.take(offset)
        for byte in range(1, width_bytes):
            known &= self._written.take(offset + byte)
        return None if known.all() else np.asarray(~known)


@dataclass(frozen=True, kw_only=True, slots=True)
class Located:
    """Where in a region the lanes of an access point."""

    region: Region
    offset: Array
    """(b, t) bytes from the start of the region's storage; sound for every lane."""
    mask: Mask
    """Lanes that may really access it."""


class GlobalMemory:
    """The regions of a launch."""

    def __init__(self, lanes: Lanes) -> None:
        """Begin without regions."""
        self._lanes = lanes
        self.regions: dict[int, Region] = {}

    def add(self, name: str, content: Array, misalignment_bytes: int = 0) -> Region:
        """Return a new region that holds a copy of ``content`` ((n,) bytes)."""
        return self._add(len(self.regions), name, content, misalignment_bytes)

    def add_variable(self, number: int, name: str, content: Array) -> Region:
        """Return the region of a module variable, at the address that its number gives it."""
        return self._add(_FIRST_VARIABLE + number, name, content, 0)

    def _add(self, number: int, name: str, content: Array, misalignment_bytes: int) -> Region:
        region = Region(name, number, content, misalignment_bytes)
        self.regions[number] = region
        return region

    def peek(self, address: int, count: int) -> bytes:
        """Return up to ``count`` bytes of a region, unwatched; none outside of all."""
        region = self._region_at(address)
        start = 0 if region is None else address - region.address
        return b"" if region is None or start < 0 else bytes(region.content[start : start + count])

    def load(
        self,
        pc: int,
        address: Array,
        mask: Mask,
        dtypes: Sequence[np.dtype[Any]],
        *,
        strong: bool = False,
    ) -> list[Array]:
        """Return what the lanes read, one array per element.

        Lanes out of bounds or misaligned are reported and read zeros; what inactive lanes get is
        unspecified.

        Args:
            pc: The instruction.
            address: (b, t) addresses.
            mask: Active lanes.
            dtypes: Types, all of one width, of the elements that lie one behind the other.
            strong: Whether the load is ``volatile`` or orders memory.
        """
        width = len(dtypes) * dtypes[0].itemsize
        found = self.locate(pc, address, mask, width, "read")
        shadow = self._lanes.globals
        take = shadow.strong_read if strong else shadow.read
        for each in found:
            self.check_written(pc, each, width)
            if each.region.watched:
                take(pc, each.region, each.offset, self._lanes.spread(each.mask), width)
        if len(found) == 1 and found[0].mask is mask:
            return _gather(found[0], dtypes)
        values = [np.zeros((1, 1), dtype) for dtype in dtypes]
        for located in found:
            parts = _gather(located, dtypes)
            keep = True if located.mask is None else located.mask
            values = [np.where(keep, *each) for each in zip(parts, values, strict=True)]
        return values

    def store(
        self, pc: int, address: Array, mask: Mask, values: Sequence[Array], *, strong: bool = False
    ) -> None:
        """Write one array per element, all of one width; of lanes that collide the last wins.

        Lanes out of bounds or misaligned are reported and dropped. Arguments as in ``load``.
        """
        width = values[0].itemsize
        for located in self.locate(pc, address, mask, width * len(values), "write"):
            if located.region.watched:
                active = self._lanes.spread(located.mask)
                self._lanes.globals.write(
                    pc, located.region, located.offset, active, values, strong=strong
                )
            located.region.note_written(located.offset, located.mask, width * len(values))
            index = located.offset // width
            for element, value in enumerate(values):
                words = located.region.words(value.dtype)
                scatter(words, index + element if element else index, value, located.mask)

    def check_written(self, pc: int, located: Located, width_bytes: int) -> None:
        """Report lanes that read what neither the host nor a kernel wrote."""
        region = located.region
        unwritten = region.unwritten(located.offset, width_bytes)
        if unwritten is None:
            return
        bad = self._lanes.both(located.mask, unwritten)
        if bad.any():
            shape = joint_shape(located.offset, bad)
            first = int(spread_to(located.offset, shape)[spread_to(bad, shape)][0])
            text = f"byte {first - region.lead_bytes} of {region.name}, which nothing wrote, read"
            self._lanes.report(UNINITIALISED_GLOBAL, pc, bad, text)

    def locate(
        self, pc: int, address: Array, mask: Mask, width_bytes: int, verb: str
    ) -> list[Located]:
        """Return the parts of an access, one per region, after reporting lanes that have none.

        Args:
            pc: The instruction.
            address: (b, t) addresses.
            mask: Active lanes.
            width_bytes: Bytes per lane.
            verb: ``read`` or ``write``, for the report.
        """
        region = self._region_at(self._first_address(address, mask))
        if region is not None:
            offset = address - (region.address - region.lead_bytes)
            if (
                int(offset.min()) >= region.lead_bytes
                and int(offset.max()) <= region.lead_bytes + region.size_bytes - width_bytes
                and not int(np.bitwise_or.reduce(offset, axis=None)) & width_bytes - 1
            ):
                return [Located(region=region, offset=offset, mask=mask)]
            if mask is not None:
                # Idle lanes hold leftovers: the first word of the storage stands for them.
                wrong = (offset < region.lead_bytes) | (offset & width_bytes - 1 != 0)
                wrong |= offset > region.lead_bytes + region.size_bytes - width_bytes
                if not (wrong & self._lanes.reduced(mask, wrong.shape)).any():
                    return [Located(region=region, offset=np.where(wrong, 0, offset), mask=mask)]
        return self._locate_lanes(pc, address, mask, width_bytes, verb)

    def _first_address(self, address: Array, mask: Mask) -> int:
        if mask is None or address.size == 1:
            return int(address.item(0))
        shape = joint_shape(address, mask)
        first = int(spread_to(mask, shape).argmax())
        return int(spread_to(address, shape)[divmod(first, shape[1])])

    def _region_at(self, address: int) -> Region | None:
        number = address - GLOBAL_WINDOW >> _SPACING_SHIFT
        return self.regions.get(number)

    def _locate_lanes(
        self, pc: int, address: Array, mask: Mask, width_bytes: int, verb: str
    ) -> list[Located]:
        """Sort the lanes of an access by region and soundness."""
        active = self._lanes.reduced(mask, address.shape)
        number = address - GLOBAL_WINDOW >> _SPACING_SHIFT
        located = []
        for each in np.unique(number[active]):
            here = active & (number == each)
            region = self._region_at(GLOBAL_WINDOW + (int(each) << _SPACING_SHIFT))
            if region is None:
                where = int(address[here][0])
                text = f"address {where:#x}, which lies in no buffer,"
                self._lanes.report(f"out-of-bounds {verb}", pc, self._lanes.both(mask, here), text)
                continue
            byte = address - region.address
            outside = here & ((byte < 0) | (byte > region.size_bytes - width_bytes))
            crooked = here & ~outside & (address & width_bytes - 1 != 0)
            for fault, bad in (("out-of-bounds", outside), ("misaligned", crooked)):
                if bad.any():
                    text = f"byte {int(byte[bad][0])} of {region.name} ({region.size_bytes} bytes)"
                    self._lanes.report(f"{fault} {verb}", pc, self._lanes.both(mask, bad), text)
            sound = here & ~outside & ~crooked
            if sound.any():
                keep = mask if (sound == active).all() else self._lanes.both(mask, sound)
                offset = np.where(sound, byte + region.lead_bytes, 0)
                located.append(Located(region=region, offset=offset, mask=keep))
        return located


def _gather(located: Located, dtypes: Sequence[np.dtype[Any]]) -> list[Array]:
    index = located.offset // dtypes[0].itemsize
    return [
        located.region.words(dtype).take(index + element if element else index)
        for element, dtype in enumerate(dtypes)
    ]


def scatter(words: Array, index: Array, value: Array, mask: Mask) -> None:
    """Write ``value`` to ``words[index]`` where ``mask`` allows; all three are broadcast."""
    if mask is None:
        shape = joint_shape(index, value)
        words[spread_to(index, shape)] = value
        return
    shape = joint_shape(index, value, mask)
    keep = spread_to(mask, shape)
    words[spread_to(index, shape)[keep]] = spread_to(value, shape)[keep]


def joint_shape(*arrays: Array) -> tuple[int, int]:
    """Return the shape that (b, t) arrays have together."""
    return max(len(array) for array in arrays), max(array.shape[1] for array in arrays)


def spread_to(array: Array, shape: tuple[int, ...]) -> Array:
    """Return ``array`` in a larger shape, without work if it has that shape."""
    return array if array.shape == shape else np.broadcast_to(array, shape)
