"""Whether the bytes of TCP streams were copied between programs and kernels, as the kernels did it."""

from collections.abc import Sequence
from typing import Any

from rigctl.model.unknowns import agreed, total
from rigctl.records import Flow


def copy_values(flows: Sequence[Flow]) -> dict[str, Any]:
    """Values of the columns `zerocopy_effective` and `copy_effective` for `flows`; `None`: not known, or not asked."""
    asked = [flow.sender.copying for flow in flows if flow.sender and flow.sender.copying.uncopied_sends is not None]
    sends = total(side.sends for side in asked)
    uncopied = total(side.uncopied_sends for side in asked)
    return {
        "zerocopy_effective": uncopied / sends if sends and uncopied is not None else None,
        "copy_effective": agreed(flow.receiver.copying.copied for flow in flows if flow.receiver is not None),
    }
