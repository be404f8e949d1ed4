#!/usr/bin/env bash
# A Spark standalone cluster on this machine, from the PySpark in .venv: a master and two workers on 127.0.0.1.
#   scripts/cluster.sh start | mend | stop | status    (mend: start workers again that have died)
# Processes, logs and the workers' scratch files are in .cluster. MASTER_PORT, CORES and MEMORY are per worker.
set -eu
cd "$(dirname "$0")/.."
PYTHON="$PWD/.venv/bin/python"
HERE="$PWD/.cluster"
PORT="${MASTER_PORT:-7077}"
CORES="${CORES:-1}"
MEMORY="${MEMORY:-1g}"
URL="spark://127.0.0.1:$PORT"

launch() { # name, class, arguments…
  local name="$1" class="$2"
  shift 2
  nohup "$SPARK_HOME/bin/spark-class" "org.apache.spark.deploy.$class" "$@" >"$HERE/$name.log" 2>&1 </dev/null &
  echo $! >"$HERE/$name.pid"
}

alive() { [ -f "$HERE/$1.pid" ] && kill -0 "$(cat "$HERE/$1.pid")" 2>/dev/null; }

await() { # name, text in its log
  for _ in $(seq 120); do
    grep -q "$2" "$HERE/$1.log" && return 0
    alive "$1" || break
    sleep 0.5
  done
  echo "$1 did not start; the end of .cluster/$1.log:" >&2
  tail -n 5 "$HERE/$1.log" >&2
  stop >/dev/null
  exit 1
}

start() {
  if alive master; then
    echo "a cluster runs already at $URL; stop it with: scripts/cluster.sh stop" >&2
    exit 1
  fi
  [ -x "$PYTHON" ] || { echo "no .venv: run make setup first" >&2; exit 1; }
  bash scripts/check_java.sh
  mkdir -p "$HERE"
  surroundings
  launch master master.Master --host 127.0.0.1 --port "$PORT" --webui-port 0
  await master "Starting Spark master at"
  mend
  echo "$URL: two workers, $CORES core and $MEMORY each; logs in .cluster"
}

surroundings() {
  SPARK_HOME="$("$PYTHON" -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)')"
  # Executors inherit this: they import Millstream from the same .venv.
  export SPARK_HOME PYSPARK_PYTHON="$PYTHON" SPARK_LOCAL_IP=127.0.0.1 POLARS_MAX_THREADS=1 SPARK_DAEMON_MEMORY=512m
}

mend() {
  alive master || { echo "no cluster runs; start one with: scripts/cluster.sh start" >&2; exit 1; }
  surroundings
  for number in 1 2; do
    alive "worker-$number" ||
      launch "worker-$number" worker.Worker --host 127.0.0.1 --cores "$CORES" --memory "$MEMORY" --webui-port 0 \
        --work-dir "$HERE/work-$number" "$URL"
  done
  for number in 1 2; do await "worker-$number" "Successfully registered with master"; done
}

stop() {
  for name in worker-2 worker-1 master; do
    if alive "$name"; then
      kill "$(cat "$HERE/$name.pid")"
      for _ in $(seq 40); do alive "$name" || break; sleep 0.25; done
    fi
    rm -f "$HERE/$name.pid"
  done
  rm -rf "$HERE"/work-*
  echo "the cluster is stopped"
}

status() {
  for name in master worker-1 worker-2; do
    if alive "$name"; then echo "$name runs, process $(cat "$HERE/$name.pid")"; else echo "$name does not run"; fi
  done
}

case "${1:-}" in
  start | mend | stop | status) "$1" ;;
  *) echo "usage: scripts/cluster.sh start | mend | stop | status" >&2; exit 2 ;;
esac
