"""Suggestions: the name that was meant by one that does not exist, or the names that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: How many names a message lists, and how many it suggests.
_MOST, _FEW = 12, 3


def listed(names: Iterable[str], most: int = _MOST) -> str:
    """Return names as a message lists them, a dozen at most.

    Examples
    --------
    >>> listed("abcdefghijklmn")
    'a, b, c, d, e, f, g, h, i, j, k, l and 2 more'
    """
    names = list(names)
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def suggestion(word: object, names: Mapping[str, str] | Iterable[str], otherwise: str) -> str:
    """Return what to say of a word that is not among some names.

    Parameters
    ----------
    word : object
    names : iterable of str, or mapping of str to str
        The names, or the name for each of its spellings.
    otherwise : str
        What to say if the word resembles none of them.
    """
    names = names if isinstance(names, Mapping) else {name: name for name in names}
    meant = dict.fromkeys(names[name] for name in _resembling(str(word).casefold(), names))
    if len(meant) > _FEW:
        return f"name one of {listed(meant)}."
    return f"did you mean {' or '.join(map(repr, meant))}?" if meant else otherwise


def _resembling(word: str, names: Iterable[str]) -> list[str]:
    """Return the names that a word is, is a part of or begins, or else the one most like it.

    Those of a few letters are all alike, so they have to be spelt more like it.
    """
    from difflib import get_close_matches

    spellings = {name.casefold(): name for name in names}
    parts = [name for name in names if word in name.casefold().split(".")[1:]]
    if word in spellings or parts:
        return [spellings[word]] if word in spellings else parts[:_FEW]
    if kinds := [name for name in names if word and name.casefold().startswith(f"{word}_")]:
        return kinds
    begun = [name for name in names if len(word) > _FEW and name.casefold().startswith(word)]
    if len(begun) == 1:
        return begun
    head, _, tail = word.partition(".")
    begins = f"{head}." if head in spellings else ""
    like = [name for name in spellings if name.startswith(begins)]
    ends = [name for name in like if begins and tail and name.endswith((f".{tail}", f"_{tail}"))]
    if ends:  # "torch.csr" for "torch.sparse_csr"
        return [spellings[name] for name in ends[:_FEW]]
    long = [name for name in like if len(name) > _FEW]
    close = get_close_matches(word, like, 1, 0.8) or get_close_matches(word, long, 1)
    close = close or ([head] if begins else [])
    return [spellings[name] for name in close]
