"""What the figures of the arms share: words."""

from normscope.nn.arms import ARMS

AS_NOTHING_KNOWN = "and as high as knowing nothing"  # what the loss of a diverged run counts as


def arm_label(arm: str, placement: str) -> str:
    """How people call an arm with its placement."""
    label = ARMS[arm].label
    return label if placement == "none" else f"{label}, {placement}"


def placement_title(placement: str) -> str:
    """Title of a placement's panel."""
    return f"placement {placement}" if placement != "none" else "no placement"
