"""The demo of `credit`: a village of a hundred people who pay each other, with clearing, over and over."""

SCENARIO = "village-100"
INTENSITY = 70
SETTINGS = {"amount_cap": "500", "clearing_yardstick": "on"}
TICKS = 3600  # then the run restarts
