"""The demo of the scheduler `jobs`: a hundred memories, experiences and cognitions that age quickly.

fast_clock    a policy with minutes instead of weeks
demo_objects  the objects of the demo, generated from their numbers
demo_driver   workers that verify objects and sometimes die, and a rollback service
"""

from pendula.server.schedulers.jobs.demo.demo_driver import DemoDriver
from pendula.server.schedulers.jobs.demo.fast_clock import with_fast_clock

__all__ = ["DemoDriver", "with_fast_clock"]
