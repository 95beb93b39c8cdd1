"""Where records come from: folders of media, and new artwork over MQTT.

folder    A folder of pictures, videos and sounds as a source of records
mqtt      new artwork over MQTT: messages on a player's own topic become insertions into its pool, each event once
"""
