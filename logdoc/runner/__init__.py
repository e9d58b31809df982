"""`logdoc run` and `explain --follow`: starts the job, passes its output on, keeps its end, explains when it fails.

The parts that run beside the job import neither the engine nor the rules: the job starts at once. Nothing here prints;
what is to be said goes to a callable.
"""
