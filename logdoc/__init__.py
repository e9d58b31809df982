"""logdoc: what broke first in a failed distributed PyTorch job, and what to type next."""
