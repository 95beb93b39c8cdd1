"""Which file systems a store may be on: locks and write-ahead logs do not work over a network."""

from pathlib import Path

from pendula.kernel.errors import InputRefused

NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs", "fuse.glusterfs"}
)
MOUNTS = Path("/proc/self/mounts")


class NetworkFileSystem(InputRefused):
    """Facts: `path`, `type` of the file system, where it is `mounted`."""

    code = "network_file_system"


def refuse_network(directory: Path, mounts: Path = MOUNTS) -> None:
    """Raise `NetworkFileSystem` when `directory` is on one; without `/proc/self/mounts` nothing is refused."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    place = directory.resolve()
    mounted, kind = Path(), ""
    for line in lines:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = Path(_plain(parts[1]))
        # The longest mount point above the directory; of equals the later one, which hides the earlier.
        if place.is_relative_to(point) and len(point.parts) >= len(mounted.parts):
            mounted, kind = point, parts[2]
    if kind in NETWORK:
        raise NetworkFileSystem(
            f"{directory} is on a network file system ({kind}); a store of jobs needs a local disk",
            path=str(directory),
            type=kind,
            mounted=str(mounted),
        )


def _plain(text: str) -> str:
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
