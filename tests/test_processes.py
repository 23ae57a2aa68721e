import time

import psutil
import pytest

from processes import python

HANGS = """if True:
    import os, subprocess, sys, time

    def waits_for_nobody():
        time.sleep(600)

    if sys.argv[1:]:
        print(os.getpid(), file=open(sys.argv[1], "a"), flush=True)
        waits_for_nobody()
    code = sys.orig_argv[2]
    subprocess.run([sys.executable, "-c", code, "pids"], start_new_session=True)
"""


def test_a_program_that_hangs_is_ended_with_its_children_and_says_where_it_was(tmp_path):
    begin = time.monotonic()
    with pytest.raises(pytest.fail.Exception) as failed:
        python("-c", HANGS, timeout=2, cwd=tmp_path)
    assert time.monotonic() - begin < 30
    assert "still ran after 2 s" in str(failed.value)
    assert "in waits_for_nobody" in str(failed.value)
    (child,) = map(int, (tmp_path / "pids").read_text().split())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
