from __future__ import annotations

import dataclasses
from typing import Callable


@dataclasses.dataclass
class Place:
    """Where one of several processes stands that train a model together (docs/distributed.md): what `freshet launch` would
    tell it. Whoever starts the processes gives each its own.

    :param rank: of this process, from 0
    :param world: how many there are
    :param rendezvous: "host:port" where rank 0 listens; there port 0 is any free one
    :param token: 32 secret bytes, the same for all: secrets.token_bytes(32)
    :param job: a name, the same for all
    :param announce: of rank 0: called with "host:port" as soon as it listens
    :param join_timeout: seconds for all to come
    :param heartbeat: seconds between signs of life; who is silent for twelve of them is lost
    :param tls: encrypts what travels; in all or in none

    >>> import queue, secrets, threading, numpy, freshet
    >>> X = numpy.random.default_rng(0).normal(size=(600, 3)).astype("float32")
    >>> y = (X[:, 0] > 0).astype(int)
    >>> where, token, models = queue.Queue(), secrets.token_bytes(32), {}
    >>> def work(rank):  # in life: two processes
    ...     place = freshet.Place(rank, 2, "127.0.0.1:0" if rank == 0 else where.get(), token, announce=where.put)
    ...     models[rank] = freshet.train(X[rank::2], y[rank::2], split="own", place=place)
    >>> both = [threading.Thread(target=work, args=[rank]) for rank in (0, 1)]
    >>> for one in both: one.start()
    >>> for one in both: one.join()
    >>> models[0].rows, models[0].to_bytes() == models[1].to_bytes()
    (600, True)
    """

    rank: int
    world: int
    rendezvous: str
    token: bytes = dataclasses.field(repr=False)
    job: str = "freshet"
    announce: Callable[[str], None] | None = None
    join_timeout: float = 30.0
    heartbeat: float = 0.25
    tls: bool = False
