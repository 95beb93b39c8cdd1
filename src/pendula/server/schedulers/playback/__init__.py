"""The scheduler of playback over HTTP: players, and the library of channels that they share.

routes             making a player, what is asked of one, what it tells
channel_routes     channels are uploaded, read again and removed
bodies             what those routes take
views              what is on and until when, what comes and what was, who got how much
choices            what can be asked of a player, to choose from
library            the channels on disk, a cache file each, every edition readable while it is in use
at_hand            which blocks of those files stay in memory
library_service    the library while it is served: players hear of a new edition before the old one is let go
bounds             how much one command may ask of a player
subscriptions      new artwork over MQTT, for every player under its own name
timekeeper         what time it is, for players with parts of the day
demo               a frame that follows three channels, with new artwork now and then
"""
