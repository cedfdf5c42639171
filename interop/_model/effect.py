"""Effects: everything that a step does beyond handing over the same bits."""

from __future__ import annotations

from typing import NamedTuple


class Effect(NamedTuple):
    """Something that a step does beyond handing over the same bits.

    Parameters
    ----------
    name : str
        The word for it in `allow`, `forbid` and `Conversion.effects`.
    allowed : bool
        Whether it is permitted unless the caller says otherwise.
    loses : bool
        Whether a property of the value is lost: routes that lose fewer are preferred.
    meaning : str
        A few words for messages.
    derived : bool
        Whether it follows from the specs along the route, so that no conversion declares it.
    """

    name: str
    allowed: bool
    loses: bool
    meaning: str
    derived: bool = False


EFFECTS: dict[str, Effect] = {
    effect.name: effect
    for effect in (
        Effect("detach", True, True, "autograd history is dropped"),
        Effect("copy", True, False, "bytes are duplicated on one device"),
        Effect("transfer", True, False, "the bytes change device"),
        Effect("densify", True, True, "a sparse array becomes dense"),
        Effect("pad", False, True, "rows of several lengths are filled up with zeros"),
        Effect("dequantize", True, True, "codes become the real numbers they stand for"),
        Effect("materialize", True, False, "a lazy value is computed"),
        Effect(
            "gather",
            False,
            False,
            "parts in other processes are collected; every process must make the same call",
        ),
        Effect(
            "drop_labels", True, True, "an index, names or attributes are left behind", derived=True
        ),
        Effect(
            "alias_immutable",
            True,
            False,
            "an immutable framework's memory is shared with a target that could write to it",
            derived=True,
        ),
        Effect("narrow", False, True, "values may not survive the dtype", derived=True),
        Effect("drop_mask", False, True, "a mask or nulls would be lost"),
        Effect(
            "share_readonly",
            False,
            False,
            "read-only memory is shared with a target that cannot carry the flag: a write reaches "
            "the owner's numbers, or ends the process",
            derived=True,
        ),
        Effect(
            "host_round_trip",
            False,
            False,
            "the bytes go from a device to the host and back",
            derived=True,
        ),
    )
}

#: The effects by which a value loses a property.
LOSSES = frozenset(name for name, effect in EFFECTS.items() if effect.loses)

#: The effects that follow from the specs along a route.
DERIVED = frozenset(name for name, effect in EFFECTS.items() if effect.derived)

#: The effects that ``copy=False`` forbids.
COPYING = frozenset({"copy", "transfer", "gather", "densify", "pad", "dequantize"})

#: Effects after which a result must not be written to, although it could be.
LOCKING = frozenset({"alias_immutable", "share_readonly"})

#: Effects after which the result lies in memory of its own.
WRITING = COPYING | {"materialize"}
