"""The commands, a module each: they read arguments, call what does the work, and show what came out."""
