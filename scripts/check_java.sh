#!/usr/bin/env bash
# Spark needs Java 17 or newer. Say exactly what is missing, or install it where we may.
set -u
version() { java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }
v=$(version)
[ "${v:-0}" -ge 17 ] 2>/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing a Java 17 runtime"
  apt-get -qq update >/dev/null 2>&1
  apt-get -qq install -y openjdk-17-jre-headless >/dev/null 2>&1
  v=$(version)
  [ "${v:-0}" -ge 17 ] 2>/dev/null && exit 0
fi
cat >&2 <<END
Spark needs Java 17 or newer; found: ${v:-none}.
  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless
  Fedora:          sudo dnf install java-17-openjdk-headless
  macOS:           brew install openjdk@17
Parsing, planning, transcripts and the in-process engine work without it.
END
exit 1
