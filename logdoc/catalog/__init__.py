"""Tables of facts about CUDA, NCCL, PyTorch, Linux and schedulers, read once and lazily; no judgement, no log text."""
