#!/usr/bin/env bash
# Run w1 and w2 on other stream engines, each in an environment of its own below .peers, and print them beside
# Millstream and Spark; then running aggregates beside Flink's. An engine that cannot be installed here is skipped.
set -u
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
results=${RESULTS:-bench/results/spark.json}
millstream=.venv/bin
declare -A packages=([flink]="apache-flink" [pathway]="pathway" [bytewax]="bytewax")

if [ ! -f "$results" ]; then
  mkdir -p "$(dirname "$results")"
  "$millstream/millstream" bench w1 w2 --json "$results" || exit 1
fi
found=()
mkdir -p .peers
for name in flink pathway bytewax; do
  place=.peers/$name
  if [ ! -f "$place/.installed" ]; then
    echo "installing ${packages[$name]} into $place"
    rm -rf "$place"
    if "$python" -m venv "$place" > ".peers/$name.log" 2>&1 &&
      "$place/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[$name]}" pyarrow \
        >> ".peers/$name.log" 2>&1; then
      touch "$place/.installed"
    else
      echo "skipped: ${packages[$name]} cannot be installed with $("$python" --version); see .peers/$name.log"
      continue
    fi
  fi
  found+=("$name=$place/bin/python")
done
if [ ${#found[@]} -eq 0 ]; then
  echo "no engine could be installed"
  exit 0
fi
"$millstream/python" -m millstream_bench.spark.throughput.peers "$results" "${found[@]}" || exit 1
if [ -f .peers/flink/.installed ]; then
  aggregates=${AGGREGATES:-bench/results/aggregates.json}
  mkdir -p "$(dirname "$aggregates")"
  exec "$millstream/python" -m millstream_bench.aggregates.spark.peers "$aggregates" .peers/flink/bin/python
fi
