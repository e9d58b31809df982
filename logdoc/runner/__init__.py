"""`logdoc run` and `explain --follow`: start the job, pass its output on untouched, keep its end, explain when it fails.

The parts that run beside the job import neither the engine nor the rules: the job starts at once. Nothing here prints;
what is to be said goes to a callable.
"""
