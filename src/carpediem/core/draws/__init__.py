"""Everything that turns a distribution into the indices of an epoch.

`systematic_epoch` and `independent_epoch` are the two ways; `Distribution.draw_epoch` is handed one of them. The
tables that a way needs are built when it first draws, and go when the epoch is over.
"""
