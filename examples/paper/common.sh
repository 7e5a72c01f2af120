# Shared by the experiments: where the program and the data are, and how a run is kept. Sourced, not run.
#
#   SEEDS=3 examples/paper/sea       fewer seeds than the ten of docs/continuous.md
#   FRESHET_DATA=/data …             where the data sets are
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
freshet=${FRESHET:-build/release/apps/freshet/freshet}
data=${FRESHET_DATA:-../shared/data}
seeds=${SEEDS:-10}
out=out/paper
mkdir -p "$out"
[ -x "$freshet" ] || { echo "there is no $freshet; run make build first" >&2; exit 1; }

# need FILE…: skips, loudly, where a data set is missing.
need() {
  local file
  for file in "$@"; do
    [ -e "$file" ] || { echo "SKIP $(basename "$0"): $file is not there; set FRESHET_DATA to where the data sets are" >&2; exit 0; }
  done
}

# experiment NAME ARGUMENTS…: one comparison, kept as out/paper/NAME.json and NAME.svg, and shown as a table.
experiment() {
  local name=$1
  shift
  echo "\$ freshet replay $* --seeds $seeds"
  "$freshet" replay "$@" --seeds "$seeds" --quiet --json --curve "$out/$name.svg" > "$out/$name.json.part"
  mv "$out/$name.json.part" "$out/$name.json"
  python3 examples/paper/table.py "$out/$name.json"
}
