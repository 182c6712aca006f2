"""Which lengths are compiled for, and how many problems fit into the memory that was allowed."""

from __future__ import annotations

from jaxpriv.errors import InputError


SIZES = (16, 32, 50, 64, 100, 128, 200)
MOST = 512  # problems at once: more are no faster, and less stays in the caches
_COPIES = 10  # of the covariances that are alive at the same time, on the host and on the device


def bucket_of(size: int) -> int:
    """The length that a trace of `size` points is padded to."""
    for bucket in SIZES:
        if size <= bucket:
            return bucket
    return -(-size // 128) * 128


def prior_bucket(count: int) -> int:
    """How many priors `count` of them are compiled as; the last one is repeated, which changes nothing."""
    return next((size for size in (1, 3, 6, 12) if count <= size), -(-count // 12) * 12)


def bytes_of_one(bucket: int, priors: int) -> int:
    """About how many bytes one problem needs while it is solved."""
    return 8 * priors * (_COPIES * bucket * bucket + 40 * bucket + 4096)


def chunk_of(bucket: int, priors: int, memory_limit: float, devices: int) -> int:
    """How many problems of a bucket are solved at once: a power of two times the devices.

    Raises InputError where not even one problem a device fits.
    """
    fitting = int(memory_limit // bytes_of_one(bucket, priors))
    if fitting < devices:
        need = bytes_of_one(bucket, priors) * devices
        raise InputError(
            f"memory_limit is {memory_limit:.3g} bytes; traces of up to {bucket} points with {priors} prior(s) on "
            f"{devices} device(s) need about {need:.3g}. Raise it, or shorten the traces."
        )
    chunk = devices
    while chunk * 2 <= min(fitting, MOST):
        chunk *= 2
    return chunk


def padded_count(count: int, chunk: int, devices: int) -> int:
    """The smallest power of two times the devices that holds `count` problems, at most `chunk`."""
    size = devices
    while size < count and size < chunk:
        size *= 2
    return size
