"""The transcript format itself."""

import pytest

from millstream.testing.transcript import (
    Advance,
    Batch,
    Count,
    Expect,
    Feed,
    Restart,
    Statement,
    TranscriptError,
    parse_transcript,
    strip_comment,
)

WHOLE = """\
# a comment

statement        # trailing
CREATE STREAM s (ts BIGINT, auction BIGINT) ORDER BY ts
    PUNCTUATED ON (ts +, auction #)   # classes are no comments
    PUNCTUATED ON (auction #, ts -)

query q
error no such
SELECT 1

input s
1 | 'a # b'
# not an element
[< 5, *]

expect q ordered
1 | 2

expect q
expect q punctuation
[< 5]

batch
restart
advance 1.5 SECONDS
state q 3

late s 0
bad s 2
"""


def test_every_kind_of_block() -> None:
    steps = parse_transcript(WHOLE)
    assert [type(step) for step in steps] == [
        Statement,
        Statement,
        Feed,
        Expect,
        Expect,
        Expect,
        Batch,
        Restart,
        Advance,
        Count,
        Count,
        Count,
    ]
    first, second = steps[0], steps[1]
    assert isinstance(first, Statement) and first.text.count("#") == 2 and first.name is None
    assert isinstance(second, Statement) and (second.name, second.error) == ("q", "no such")
    assert isinstance(steps[2], Feed) and [text for _, text in steps[2].elements] == ["1 | 'a # b'", "[< 5, *]"]
    assert isinstance(steps[8], Advance) and steps[8].micros == 1_500_000


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("a # b", "a "),
        ("# b", ""),
        ("'a # b' # c", "'a # b' "),
        ("it's 5 # c", "it's 5 "),
        ("a#b", "a#b"),
        ("(auction #)", "(auction #)"),
        ("(auction #, ts +) # x", "(auction #, ts +) "),
    ],
)
def test_comments(line: str, kept: str) -> None:
    assert strip_comment(line) == kept


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inputs s\n1\n", "did you mean 'input'"),
        ("statement\n", "a statement is expected"),
        ("query q\nerror x\n", "a statement is expected"),
        ("expect q sorted\n", "unknown word 'sorted'"),
        ("expect\n", "needs a name"),
        ("state q\n", "a name and a number"),
        ("state q many\n", "a name and a number"),
        ("advance 5\n", "a number and a unit"),
        ("advance -5 SECONDS\n", "a number and a unit"),
        ("advance five SECONDS\n", "a number and a unit"),
        ("restart now\n", "takes no arguments"),
        ("prod\n", "needs a name"),
    ],
)
def test_malformed_blocks_are_named(text: str, message: str) -> None:
    with pytest.raises(TranscriptError, match=message) as caught:
        parse_transcript(text)
    assert caught.value.line == 1
