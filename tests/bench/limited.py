"""A configuration file with small limits, for sidecars that are to reach them. Tests only."""

from pathlib import Path


def limited(folder: Path, **limits: int) -> tuple[str, ...]:
    """The arguments of a sidecar with these limits; the file is written into `folder`."""
    file = folder / "limits.toml"
    file.write_text("\n".join(["[limits]", *(f"{key} = {value}" for key, value in limits.items())]))
    return ("--config", str(file))
