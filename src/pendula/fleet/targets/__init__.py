"""Where a truck is sent: hold points, speeds and rolling targets.

hold_points      the largest position a truck may reach, its place and its explanation
speed_limits     how fast it may go and still stop in time
rolling_target   the target on the route, and its command
sequence         numbers of commands and their acknowledgement
"""
