"""The rival: another distribution that installs a package of the same name."""

from __future__ import annotations

from importlib.metadata import packages_distributions, version

from interop._model.provenance import OWN, how_to_install


def rival(package: str) -> str:
    """Say that another distribution installs a package of this name, too; "" if none does."""
    others = sorted(set(packages_distributions().get(package, ())) - {OWN})
    if not others:
        return ""
    name = others[0]
    return (
        f"the distribution {name!r} {version(name)} installs a package {package!r}, as {OWN!r} "
        "does, and the one installed later replaces files of the other; keep them in separate "
        f"environments (here: pip uninstall {name}, then {how_to_install(anew=True)})."
    )
