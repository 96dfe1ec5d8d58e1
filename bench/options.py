"""
options.py: the options of a measurement: those of its command, then those of the variable BENCH.
"""

import os
import shlex
import sys


def given_options():
    return sys.argv[1:] + shlex.split(os.environ.get("BENCH", ""))
