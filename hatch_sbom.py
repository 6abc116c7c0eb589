"""SBOM of a wheel: its agents and the C library linked into them (CycloneDX 1.6, PEP 770).

The libraries that rigctl imports are not in the wheel: METADATA names them and their extras, constraints.txt has the
tested versions. The same agents give the same bytes: no time, no random number.
"""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

NAME: Final = "rigctl.cdx.json"
_LIBRARIES: Final = {"freebsd-": None, "windows-": "mingw-w64", "": "musl"}
"""The start of a machine's name → what is linked into its agent; None: only the C library of the node is used."""
_LICENSES: Final = {"musl": {"id": "MIT"}, "mingw-w64": {"id": "ZPL-2.1"}}


def sbom(version: str, agents: Sequence[Mapping[str, str]], compiler: str | None) -> str:
    """Return the SBOM. Each agent has `machine` and `sha256`; `compiler`: ziglang's version, None for the host's."""
    product = f"pkg:pypi/rigctl@{version}"
    components: list[dict[str, Any]] = []
    dependencies: list[dict[str, Any]] = []
    for agent in agents:
        machine = agent["machine"]
        reference = f"agent-{machine}"
        library = next(name for prefix, name in _LIBRARIES.items() if machine.startswith(prefix)) if compiler else None
        components.append(
            {
                "type": "file",
                "bom-ref": reference,
                "name": f"rigctl/bundled/agents/rigctl-agent-{machine}" + (".exe" if "windows" in machine else ""),
                "version": version,
                "hashes": [{"alg": "SHA-256", "content": agent["sha256"]}],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        )
        dependencies.append({"ref": reference, "dependsOn": [library] if library else []})
    for name in sorted({each for dependency in dependencies for each in dependency["dependsOn"]}):
        components.append(
            {
                "type": "library",
                "bom-ref": name,
                "name": name,
                "licenses": [{"license": _LICENSES[name]}],
                "description": f"C library, linked statically; the one in ziglang {compiler}",
                "properties": [{"name": "rigctl:from", "value": f"pkg:pypi/ziglang@{compiler}"}],
            }
        )
    dependencies.append({"ref": product, "dependsOn": [f"agent-{agent['machine']}" for agent in agents]})
    tools = [{"type": "application", "name": "ziglang", "version": compiler}] if compiler is not None else []
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": product,
                "name": "rigctl",
                "version": version,
                "purl": product,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
            "tools": {"components": tools},
        },
        "components": components,
        "dependencies": dependencies,
    }
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, digest).urn
    return json.dumps(document, indent=1, sort_keys=True) + "\n"
