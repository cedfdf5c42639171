"""Deprecation: names that are on their way out, and those that take their place.

A former name works until the release that drops it, and warns the line that uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .caller import warn_caller


class Renamed(NamedTuple):
    """What became of a former name.

    Parameters
    ----------
    new : str
        The present name.
    since : str
        The release from which the former name warns.
    until : str
        The first release without it: at least two minor releases later.
    """

    new: str
    since: str
    until: str


def with_new_names(
    call: str, named: Mapping[str, Any], renamed: Mapping[str, Renamed]
) -> dict[str, Any]:
    """Return the keywords of a call by their present names, and warn of former ones.

    Parameters
    ----------
    call : str
        Its name.
    named : mapping of str to object
        The keywords as they were given.
    renamed : mapping of str to Renamed
        By former name.

    Raises
    ------
    TypeError
        A keyword is given by both names.
    """
    present = {name: value for name, value in named.items() if name not in renamed}
    for name in filter(renamed.__contains__, named):
        new, since, until = renamed[name]
        if present.get(new) is not None:  # the front of `convert` hands over what was left out
            msg = f"{call}() got {new!r} twice, once by its former name {name!r}"
            raise TypeError(msg)
        text = f"{name}= of {call}() is called {new}= since {since}; {until} drops the old name"
        warn_caller(DeprecationWarning(text))
        present[new] = named[name]
    return present
