"""Another service that listens on the port; no part of the job itself."""

import socket
import sys
import time

listener = socket.socket()
listener.bind(("0.0.0.0", int(sys.argv[1])))
listener.listen()
time.sleep(float(sys.argv[2]))
