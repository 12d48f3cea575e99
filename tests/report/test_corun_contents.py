"""Solo runs and bags in words."""

from crosscast.report.corun_contents import contents_lines, failure_lines
from crosscast.tables.corun.contents import BagCount, CoRunContents, CoRunFailure, SoloCount


def test_each_device_and_size_of_bags_has_a_line() -> None:
    contents = CoRunContents(
        (SoloCount("cpu", 1, 0), SoloCount("gpu", 1200, 3)),
        (BagCount("cpu", 2, 1, 1, 0, 0), BagCount("gpu", 3, 84000, 6, 2, 1)),
        (),
    )
    assert contents_lines(contents) == [
        "cpu: 1 solo run",
        "gpu: 1,200 solo runs, of which 3 failed",
        "cpu: 1 bag of 2",
        "gpu: 84,000 bags of 3 in 6 configurations, of which 2 did not fit and 1 failed",
    ]
    assert contents_lines(CoRunContents((), (), ())) == []


def test_what_failed_says_where_and_why() -> None:
    place = ("sums", "tiny", "gpu", '{"sharing": "mps"}')
    failed = (
        CoRunFailure(*place, None, None, "no memory"),
        CoRunFailure(*place[:3], "{}", "pair", 0, "it hung"),
        CoRunFailure(*place[:3], "{}", "pair", 2, "it hung"),
    )
    assert failure_lines(CoRunContents((), (), failed)) == [
        'sums tiny on gpu {"sharing": "mps"}, alone: no memory',
        "sums tiny on gpu, in the bag pair: it hung",
        "sums tiny on gpu, in the bag pair, repeat 2: it hung",
    ]
