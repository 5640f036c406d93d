"""Asks `ready.py` to run something with our pipes: `python ready_client.py SOCKET WHAT ARGUMENT...`."""

import json
import os
import signal
import socket
import sys

place, *arguments = sys.argv[1:]
ready = socket.socket(socket.AF_UNIX)
ready.connect(place)
for each in (signal.SIGTERM, signal.SIGINT):
    signal.signal(each, lambda number, _: ready.send(bytes([number])))
told = {"folder": os.getcwd(), "variables": dict(os.environ), "arguments": arguments}
socket.send_fds(ready, [json.dumps(told).encode() + b"\n"], [0, 1, 2])
nowhere = os.open(os.devnull, os.O_RDWR)
for pipe in range(3):
    os.dup2(nowhere, pipe)
status = ready.recv(1)
# Its end is ours: it may still have something to write.
while ready.recv(1):
    pass
sys.exit(status[0] if status else 1)
