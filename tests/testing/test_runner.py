"""The runner rejects wrong transcripts: each one here fails for the stated reason."""

import pytest

from millstream.testing import Variant, run_paths, run_text

PREAMBLE = """\
statement
CREATE STREAM s (k BIGINT, v DOUBLE, ts BIGINT) ORDER BY ts PUNCTUATED ON (ts +)

query q
SELECT k, v FROM s

input s
1 | 0.5 | 1
2 | 1.5 | 2
[*, *, < 2]

"""


def failures(text: str, variant: Variant | None = None) -> str:
    return "\n".join(run_text(PREAMBLE + text, variant).failures)


def test_a_correct_transcript_passes() -> None:
    assert failures("expect q\n2 | 1.5\n1 | 0.5000000000000001\n\nstate q 0\nlate s 0\nbad s 0\n") == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("expect q\n1 | 0.5\n", "extra:   2 | 1.5"),
        ("expect q\n1 | 0.5\n2 | 1.5\n2 | 1.5\n", "missing: 2 | 1.5"),
        ("expect q\n1 | 0.5\n2 | 1.500001\n", "missing: 2 | 1.500001"),
        ("expect q ordered\n2 | 1.5\n1 | 0.5\n", "their order is not"),
        ("", "rows that no expect took"),
        ("expect q\n1 | 0.5\n2 | 1.5 | 7\n", "is not a row of"),
        ("expect q\n1 | 0.5\ntwo | 1.5\n", "is not a row of"),
        ("expect nosuch\n1\n", "unknown query 'nosuch'"),
        ("expect q\n1 | 0.5\n2 | 1.5\n\nstate q 1\n", "state of 'q' is 0, expected 1"),
        ("expect q\n1 | 0.5\n2 | 1.5\n\nlate s 1\n", "late of 's' is 0, expected 1"),
        ("expect q\n1 | 0.5\n2 | 1.5\n\nbad s 1\n", "bad of 's' is 0, expected 1"),
        ("expect q\n1 | 0.5\n2 | 1.5\n\nstatement\nerror oops\nSET ets = 'none'\n", "but it succeeded"),
        ("expect q\n1 | 0.5\n2 | 1.5\n\nquery r\nerror oops\nSELECT nosuch FROM s\n", "got: M"),
        ("expect q\n1 | 0.5\n2 | 1.5\n\nquery r\nSELECT nosuch FROM s\n", "unknown column 'nosuch'"),
        ("expect q\n1 | 0.5\n2 | 1.5\n\ninput nosuch\n1\n", "unknown stream 'nosuch'"),
        ("expect q\n1 | 0.5\n2 | 1.5\n\nprod q {*}\n", "no aggregate at the top"),
        ("expect q\n1 | 0.5\n2 | 1.5\n\nfeedback q\n", "needs a query and a pattern"),
        ("expect q\n1 | 0.5\n2 | 1.5\n\nfeedback q ~[nosuch = 1]\n", "nosuch"),
    ],
)
def test_wrong_transcripts_fail(text: str, reason: str) -> None:
    assert reason in failures(text)


def test_wrong_punctuation_fails() -> None:
    text = PREAMBLE.replace("SELECT k, v FROM s", "SELECT k, ts FROM s") + "expect q\n1 | 1\n2 | 2\n\n"
    assert run_text(text + "expect q punctuation\n[*, < 2]\n").passed
    assert "extra:   [*, < 2]" in run_text(text + "expect q punctuation\n").failures[0]
    assert "missing: [*, < 3]" in run_text(text + "expect q punctuation\n[*, < 2]\n[*, < 3]\n").failures[0]


@pytest.mark.parametrize(
    "variant", [Variant(cut="1"), Variant(cut="random:1"), Variant(shards=2), Variant(restart=True)]
)
def test_wrong_transcripts_fail_in_every_variant(variant: Variant) -> None:
    assert "extra:   2 | 1.5" in failures("expect q\n1 | 0.5\n", variant)


def test_rows_before_a_restart_are_kept() -> None:
    assert "extra:   2 | 1.5" in failures("restart\n\nexpect q\n1 | 0.5\n")


def test_a_file_that_is_not_text_fails_alone(tmp_path) -> None:
    (tmp_path / "a.transcript").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "b.transcript").write_text("\ufeff" + PREAMBLE + "expect q\n1 | 0.5\n2 | 1.5\n", encoding="utf-8")
    outcomes = run_paths([tmp_path], Variant())
    assert [outcome.passed for outcome in outcomes] == [False, True]


@pytest.mark.parametrize("text", ["statement\nerror [\nSELECT 1\n", "advance 99999999999999999999 DAYS\n"])
def test_malformed_steps_are_named(text: str) -> None:
    assert "crashed" not in failures(text) and "M700" in failures(text)


def test_a_wrong_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLSTREAM_ETS", "foo")
    assert "option 'ets' cannot be 'foo'" in failures("")


def test_a_query_may_be_named_like_a_keyword() -> None:
    stream, query = "statement\nCREATE STREAM s (k BIGINT)\n\n", "query select\nSELECT k FROM s\n\n"
    text = f"{stream}{query}input s\n1\n\nrestart\n\nexpect select\n1\n"
    outcome = run_text(text)
    assert outcome.passed, outcome.failures


FILES = """\
file s/1.csv
ts,k
1,1   # a comment
2,2

file names.csv
k,name
1,one

statement
CREATE STREAM s (ts BIGINT, k BIGINT) ORDER BY ts WITH (connector = 'csv', path = 's')

statement
CREATE TABLE names (k BIGINT, name VARCHAR) WITH (connector = 'csv', path = 'names.csv')

query q
SELECT s.ts, n.name FROM s JOIN names n ON s.k = n.k

query r
SELECT ts FROM s

"""


@pytest.mark.parametrize("variant", [Variant(), Variant(shards=2, cut="1"), Variant(cut="random:3", restart=True)])
def test_files_are_read_by_connectors(variant: Variant) -> None:
    text = (
        FILES
        + "expect q\n1 | one\n\nfile s/2.csv\nts,k\n1,1\n3,1\n\nexpect r\n1\n2\n3\n\nlate s 1\n\nexpect q\n3 | one\n"
    )
    assert run_text(text, variant).failures == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("file\na\n", "M7010: 'file' needs one name"),
        ("file a b\na\n", "M7010: 'file' needs one name"),
        ("file ../a.csv\na\n", "not a file below the transcript's own folder"),
        ("file /a.csv\na\n", "not a file below the transcript's own folder"),
        (FILES + "expect q\n", "extra:   1 | one"),
        (FILES + "expect q\n1 | one\n", "query 'r' emitted 2 rows that no expect took"),
    ],
)
def test_wrong_files_fail(text: str, reason: str) -> None:
    assert reason in "\n".join(run_text(text).failures)
