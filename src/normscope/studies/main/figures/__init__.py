"""What the figures of the arms share: words."""

AS_NOTHING_KNOWN = "and as high as knowing nothing"  # what the loss of a diverged run counts as


def placement_title(placement: str) -> str:
    """Title of a placement's panel."""
    return f"placement {placement}" if placement != "none" else "no placement"
