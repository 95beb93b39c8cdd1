"""The scheduler of playback over HTTP: players, and the library of channels that they share.

routes             create, control and read players
channel_routes     upload, refresh and remove channels
request_bodies     request bodies of these routes
views              the state of a player: current item, lookahead, history, exposure
choices            questions and commands that a page offers for a player
library            channels on disk, a cache file each; editions in use stay readable
block_cache        the blocks of those files that stay in memory
library_service    updates players before an old edition is released
bounds             limits of one command
subscriptions      new artwork over MQTT for every player
timekeeper         sets the wall clock of players with day parts
"""
