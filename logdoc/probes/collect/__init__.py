"""The parts of the collector script: standard library only, Python 3.8, joined by `logdoc.probes.collector`.

They run under the job's interpreter, so they import nothing of logdoc but each other.
"""
