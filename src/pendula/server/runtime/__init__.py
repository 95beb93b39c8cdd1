"""Hosts schedulers and their engines, each engine with its thread and clock.

scheduler_spec   the description of a scheduler, and the server as a scheduler uses it
supervisor       opens, watches and closes all engines and services of a server
engine_host      a served engine: its clock, its driver, its thread, its listeners
past             threads for reads of past states, the states, and the index of a journal by time
streams          server-sent events with resume and explicit gaps
"""

from pendula.server.runtime.scheduler_spec import Host, Lifecycle, New, SchedulerSpec, Sentences, Service, Store

__all__ = ["Host", "Lifecycle", "New", "SchedulerSpec", "Sentences", "Service", "Store"]
