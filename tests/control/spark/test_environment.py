"""What a session needs: Java, a master. What is missing is one message, and no JVM is started to find it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from millstream.control.spark.environment import check_java, check_master, starting
from millstream.errors import OptionError


def java(folder: Path, release: str | None) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").touch(0o755)
    if release is not None:
        (folder / "release").write_text(release)
    return folder


@pytest.mark.parametrize(
    ("release", "version"),
    [('JAVA_VERSION="1.8.0_292"\n', 8), ('IMPLEMENTOR="x"\nJAVA_VERSION="11.0.2"\n', 11), ('JAVA_VERSION="16"\n', 16)],
)
def test_a_java_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, version: int) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "jdk", release)))
    with pytest.raises(OptionError, match=f"M6055: Spark needs Java 17 or newer; .*/bin/java is Java {version}\n"):
        check_java()


@pytest.mark.parametrize("release", ['JAVA_VERSION="17.0.9"\n', 'JAVA_VERSION="21"\n', None, "nonsense"])
def test_a_java_that_is_new_or_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str | None) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "jdk", release)))
    check_java()


def test_a_wrong_java_home_is_named_even_if_there_is_a_java_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(java(tmp_path / "jdk", None) / "bin"))
    monkeypatch.setenv("JAVA_HOME", "/no/such/jdk")
    with pytest.raises(OptionError, match="M6055: JAVA_HOME is '/no/such/jdk', and there is no bin/java in it"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    check_java()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OptionError, match="M6055: Spark needs Java 17 or newer, and there is none"):
        check_java()


def test_a_master_that_cannot_be_reached() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(OptionError, match=rf"M6064: cannot reach .*\n  127.0.0.1:{port}: Connection refused"):
            check_master(f"spark://127.0.0.1:{port}")
        with socket.create_server(("127.0.0.1", 0)) as opened:
            check_master(f"spark://127.0.0.1:{port},127.0.0.1:{opened.getsockname()[1]}")
    for malformed in ("spark://host", "spark://", "spark://host:port"):
        with pytest.raises(OptionError, match=r"M6064: .* is malformed\n  hint: spark://host:7077"):
            check_master(malformed)
    for master in ("loca", "local[", "localhost:7077", "", 4):
        with pytest.raises(OptionError, match=r"M6064: .* is not a Spark master"):
            check_master(master)
    for master in ("local", "local[2]", "local[*]", "local[2,4]", "local-cluster[2,1,1024]", "yarn", "k8s://host"):
        check_master(master)


def test_a_session_that_does_not_start() -> None:
    reason = "org.apache.spark.SparkException: Could not parse Master URL: 'loca'"
    with pytest.raises(OptionError) as caught, starting("loca", None):
        raise RuntimeError(f"An error occurred.\n: {reason}\n  at org.apache.spark.SparkContext$.create")
    assert str(caught.value).startswith(f"M6064: Spark did not start at 'loca'\n  {reason}.\n  hint: ")
