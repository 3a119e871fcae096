"""Days: who wants how many pods when."""

from pathlib import Path

from tools.churn.day import DAY, HOUR, Size, made, pods_at_most, traced

_SMALL = Size(services=4, replicas=40, jobs=50)


def test_a_seed_makes_one_day() -> None:
    """Figures of two runs are about one input."""
    assert made(1, _SMALL) == made(1, _SMALL)
    assert made(1, _SMALL) != made(2, _SMALL)


def test_services_are_smaller_by_night() -> None:
    """All together have at four in the morning less than three quarters of what they have at their peak."""
    services = made(1, _SMALL).services
    by_night = sum(
        next(count for second, count in reversed(service.scale) if second <= 4 * HOUR) for service in services
    )
    assert by_night < pods_at_most(services) * 3 / 4


def test_of_a_trace_the_day_with_most_arrivals_is_played(tmp_path: Path) -> None:
    """Pods that ran before come at its first second, and those that have ended do not come."""
    rows = [
        "name,cpu_milli,memory_mib,creation_time,deletion_time",
        f"before,1000,2048,100,{DAY + 500}",
        "ended,1000,2048,100,200",
        f"first,2000,4096,{DAY + 10},{DAY + 70}",
        f"second,2000,4096,{DAY + 20},",
        f"third,2000,4096,{DAY + 30},{3 * DAY}",
    ]
    file = tmp_path / "trace.csv"
    file.write_text("\n".join(rows))
    day = traced(file)
    assert [(job.arrival, job.template.cpu) for job in day.jobs] == [(0, 1000), (10, 2000), (20, 2000), (30, 2000)]
    assert day.jobs[0].work == 500
    assert day.jobs[1].work == 60
    assert day.jobs[2].work > DAY
