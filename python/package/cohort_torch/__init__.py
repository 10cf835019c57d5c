"""Cohort's collectives for PyTorch: ``torch.distributed.init_process_group("cohort")``.

Importing this module registers the backend for tensors on CPUs. From PyTorch 2.15 on the import is not needed:
``init_process_group`` finds an installed backend by its name.
"""

import atexit
import os

import torch
import torch.distributed as dist


def _require_matching_torch() -> None:
    from cohort_torch import _build

    def minor(version: str) -> list[str]:
        return version.split("+")[0].split(".")[:2]

    if minor(torch.__version__) != minor(_build.TORCH_VERSION):
        raise ImportError(
            f"cohort_torch was built with PyTorch {_build.TORCH_VERSION} and this is {torch.__version__}; "
            "build it again: pip install --force-reinstall --no-deps ./python"
        )


_require_matching_torch()

from cohort_torch import _C  # noqa: E402

__all__ = ["register", "use_heap"]


def _backend_of_all_ranks():
    """The backend of the default group, if it is this one: its ranks are connected already."""
    group = dist.GroupMember.WORLD
    if group is None:
        return None
    backend = group._get_backend(torch.device("cpu"))
    backend = getattr(backend, "wrapped_pg", backend)  # TORCH_DISTRIBUTED_DEBUG=DETAIL
    return backend if backend.name() == "cohort" else None


def _create_backend(options, _backend_options):
    ranks = list(options.global_ranks_in_group)
    return _C.create_backend(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        options.group_id,
        ranks,
        _backend_of_all_ranks() if ranks else None,
    )


def register() -> None:
    """Makes the backend known to ``torch.distributed``. Importing this module does it."""
    if "COHORT" not in dist.Backend._plugins:
        dist.Backend.register_backend("cohort", _create_backend, extended_api=True, devices=["cpu"])
        # Cohort has records of its own. PyTorch's make a small call a half slower, so they are for who asks by name.
        if not os.environ.get("TORCH_FR_BUFFER_SIZE"):
            getattr(dist.distributed_c10d, "_FR_SELF_RECORDING_BACKENDS", set()).add("cohort")


class use_heap:  # noqa: N801, a function to its users
    """From now on, large tensors lie in memory that the ranks of a host share, where collectives need no copies.

    For the whole program, or for a block: ``with cohort_torch.use_heap(): model = DistributedDataParallel(...)``.
    Forked processes cannot see these tensors: make data sets whose DataLoader forks workers before, or outside.
    """

    def __init__(self):
        _C.use_heap(True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _C.use_heap(False)


# Ranks that end without a word are taken for lost by the others.
atexit.register(_C.shut_down_all)
register()
