"""The room of playback over HTTP, with its library of channels and its demo.

bodies             what is asked of the room `playback`
channel_routes     the library over HTTP: channels are uploaded
demo               the living example of the room `playback`: a frame that follows three channels
library            the channels of the server: a cache file each, shared by all players
library_service    the library while it is served: whoever follows a channel is told of its new edition before the
routes             the room `playback` over HTTP: players are made
views              what a player says over HTTP: what is on and until when, what comes and what was
"""
