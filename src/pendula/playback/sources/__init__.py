"""Where records come from: folders of media, and new artwork over MQTT.

folder    a folder of pictures, videos and sounds as a source of records
mqtt      new artwork over MQTT: messages on a player's own topic become insertions into its pool, each event once

`mqtt` loads asyncio and is imported by name: `from pendula.playback.sources import mqtt`.
"""

from pendula.playback.sources.folder import FolderSource, available

__all__ = [
    "FolderSource",  # lists a folder
    "available",  # which records have their file
]
