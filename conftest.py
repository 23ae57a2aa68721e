"""What cannot be imported here is not searched for examples."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["src/carpediem/lab/kernels/*.py"]
