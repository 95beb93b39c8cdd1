"""What a server hosts: schedulers, and their engines, each with its thread and its time.

scheduler_spec      what a scheduler is to the server, and what it may use of its host
supervisor     everything one running server holds, opened, watched and closed together
engine_host    one engine while it is served: its driver, the one thread that touches it, those who listen
creation       engines made and removed on disk, whole or not at all
pace           a steady clock for an engine that keeps time
looking_back   engines as they were, one kept where somebody last looked
readiness      whether a store takes work; what is only slow is not wrong yet
past           threads of their own for whoever looks back
moments        where in a journal a time lies, and where something went wrong
choices        what can be asked of an engine, as questions and forms with examples
streams        server-sent events, resumed after the last one seen, with every gap told
"""

from pendula.server.hosting.scheduler_spec import Demo, Host, Lifecycle, New, SchedulerSpec, Sentences, Service, Store

__all__ = ["Demo", "Host", "Lifecycle", "New", "SchedulerSpec", "Sentences", "Service", "Store"]
