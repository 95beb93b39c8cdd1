"""The scheduler of playback over HTTP: players, and the library of channels that they share.

routes             create, control and read players
channel_routes     upload, refresh and remove channels
views              request bodies, the state of a player, and the questions and commands that a page offers
library            channels on disk, a cache file each; editions in use stay readable
library_service    updates players before an old edition is released, and sets their wall clocks
subscriptions      new artwork over MQTT for every player
"""
