"""A small array class that no other library knows."""

from __future__ import annotations

from array import array


class Track:
    """Evenly sampled numbers over NumPy's or anybody's buffer.

    Parameters
    ----------
    samples : array.array
        Of type code ``"d"``.
    """

    def __init__(self, samples: array[float]) -> None:
        self.samples = samples
