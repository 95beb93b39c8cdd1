"""The living example of the scheduler `jobs`: a hundred memories, experiences and cognitions that age in fast time.

quick_time   the state machines of a policy with minutes in the place of weeks
inhabitants  the objects of the example, each made out of its number
keeper       who looks after them: workers that find something out, one that dies now and then, and a rollback service
"""

from pendula.server.schedulers.jobs.demo.keeper import Keeper
from pendula.server.schedulers.jobs.demo.quick_time import quickened

__all__ = ["Keeper", "quickened"]
