"""python -m toolmend is the command toolmend."""

import subprocess
import sys

from ._child import find_binary

if __name__ == "__main__":
    sys.exit(subprocess.call([find_binary(), *sys.argv[1:]]))
