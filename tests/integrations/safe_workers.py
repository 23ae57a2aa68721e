"""How the programs of this folder start the workers of their loaders when they are several processes."""

import multiprocessing


def fork_workers_elsewhere(*modules):
    """Lets data loaders fork their workers off a process without threads, which has imported `modules` already.

    A worker that is forked off a rank while a thread of gloo holds a lock waits for that lock forever.
    """
    multiprocessing.set_forkserver_preload([*modules])
    multiprocessing.set_start_method("forkserver", force=True)
