"""A player on a terminal, with folders as channels.

gallery    folders of media as the channels of a player: their records in memory or in cache files
loop       the loop of a player: time, keys and new files in, pictures out
"""
