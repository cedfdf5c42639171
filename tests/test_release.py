"""Releases: pinned tools, and the list of what a wheel is made of."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / ".ci" / "build-tools.txt"


def test_what_builds_a_release_is_pinned_with_hashes() -> None:
    """All that the build system requires, and pip itself refuses anything else."""
    text = TOOLS.read_text()
    pinned = dict(
        re.findall(r"^([\w.-]+)==\S+ \\\n    --hash=sha256:([0-9a-f]{64})$", text, re.MULTILINE)
    )
    assert len(pinned) == text.count("==") == text.count("--hash=")
    system = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    assert {"build", *system["requires"]} <= pinned.keys()
    session = (ROOT / "noxfile.py").read_text()
    assert '"--require-hashes"' in session
    assert '"--no-isolation"' in session


def test_the_hooks_of_commits_have_the_versions_of_the_commands() -> None:
    """The environments that pre-commit makes have the tools of the group `style`."""
    hooks = re.findall(r'\["([\w-]+==[\d.]+)"\]', (ROOT / ".pre-commit-config.yaml").read_text())
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert len(hooks) == 3
    assert {*hooks} <= {*groups["style"]}


def test_the_list_of_a_wheel_has_its_digest_and_what_it_requires(wheel: Path) -> None:
    """It is CycloneDX; what only an extra requires is optional, and no version is made up."""
    command = [sys.executable, str(ROOT / ".ci" / "sbom"), str(wheel), str(TOOLS)]
    printed = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2)]
    assert printed[0] == printed[1]
    contents = json.loads(printed[0])
    assert (contents["bomFormat"], contents["specVersion"]) == ("CycloneDX", "1.6")
    product = contents["metadata"]["component"]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert product["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert product["purl"].startswith("pkg:pypi/interop-example@")
    required = {part["name"]: part for part in contents["components"]}
    assert required["array-interop"]["scope"] == required["numpy"]["scope"] == "required"
    assert required["pytest"]["scope"] == "optional"
    assert not any("version" in part for part in required.values())
    (depends,) = contents["dependencies"]
    assert depends["dependsOn"] == [part["bom-ref"] for part in contents["components"]]
    tools = {part["name"] for part in contents["metadata"]["tools"]["components"]}
    assert {"build", "hatchling"} <= tools
