"""Trouble: what is wrong with a framework as it is installed here, in its plugin's words."""

from __future__ import annotations

from typing import NamedTuple

from ._conversion import Conversion

__all__ = ["Trouble"]


class Trouble(NamedTuple):
    """Something that keeps conversions from working on this machine.

    Parameters
    ----------
    problem : str
        What is wrong, in one sentence.
    fix : str
        The line that mends it, to be typed into a shell if there is one.
    formats : tuple of str
        The formats concerned; ``"grid"`` stands for ``"grid.csr"``, too.
    others : tuple of str or None
        If only conversions between `formats` and some others are disabled, these.
    devices : frozenset of str or None
        If only conversions are disabled that need a device of some types, these.
    """

    problem: str
    fix: str
    formats: tuple[str, ...]
    others: tuple[str, ...] | None = None
    devices: frozenset[str] | None = None

    def disables(self, one: Conversion) -> bool:
        """Tell whether a conversion cannot be used because of it."""
        here = _among(one.source, self.formats), _among(one.target, self.formats)
        if self.others is not None:
            there = _among(one.source, self.others), _among(one.target, self.others)
            concerned = (here[0] and there[1]) or (here[1] and there[0])
        else:
            concerned = any(here)
        return concerned and (
            self.devices is None or self._needs(one.devices) or self._needs(one.to_devices)
        )

    def _needs(self, devices: frozenset[str] | None) -> bool:
        """Tell whether what runs on some devices needs one that is in trouble."""
        return bool(devices and self.devices and devices & self.devices and "cpu" not in devices)


def _among(name: str, formats: tuple[str, ...]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in formats)
