"""A day of the outbox is made while something is being written: nothing is lost or parked."""

import threading

import psycopg

from tests.py.support.world import World


def test_a_renewal_that_meets_a_new_partition_is_tried_again(database_url: str) -> None:
    world = World(database_url)
    world.subscribe(1)
    refused: list[str | None] = []

    def renew() -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            try:
                connection.execute("SELECT billing_worker.renew_due(10)")
            except psycopg.Error as error:
                refused.append(error.sqlstate)

    with psycopg.connect(database_url, autocommit=True) as housekeeper:
        with housekeeper.transaction():
            housekeeper.execute("LOCK TABLE billing.outbox_event_default IN ACCESS EXCLUSIVE MODE")
            renewing = threading.Thread(target=renew)
            renewing.start()
            waits = (
                "SELECT count(*) FROM pg_locks AS l"
                " WHERE NOT l.granted AND l.relation = 'billing.outbox_event_default'::regclass"
            )
            while world.value(waits) == 0:
                assert renewing.is_alive()
            housekeeper.execute("SELECT billing_worker.ensure_outbox_partitions(1)")
        renewing.join()
    assert refused == ["SB401"]
    assert world.count("subscription", "parked_at IS NOT NULL") == 0
    assert world.value("SELECT billing_worker.renew_due(10)") == 1
    world.close()
