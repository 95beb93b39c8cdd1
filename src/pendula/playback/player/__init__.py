"""A player on a terminal, with folders as channels.

gallery    folders of media as channels, with records in memory or in cache files
slideshow  the loop of a player: time, keys and new files in, pictures out
"""
