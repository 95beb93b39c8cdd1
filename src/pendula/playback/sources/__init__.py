"""Sources of records: folders of media, and new artwork over MQTT.

`mqtt` loads asyncio and is imported by name: `from pendula.playback.sources import mqtt`.
"""

from pendula.playback.sources.folder import FolderSource, available

__all__ = [
    "FolderSource",  # lists a folder
    "available",  # a shelf without records whose file is missing
]
