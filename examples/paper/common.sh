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
    [ -e "$file" ] && continue
    printf '\n**** SKIP %s: %s is not there; set FRESHET_DATA to where the data sets are ****\n\n' "$(basename "$0")" "$file" >&2
    exit 0
  done
}

# experiment NAME ARGUMENTS…: one comparison, kept as out/paper/NAME.json, .svg (the curves of the first seed) and .txt.
experiment() {
  local name=$1
  shift
  echo "\$ freshet replay $* --seeds $seeds"
  "$freshet" replay "$@" --seeds "$seeds" --quiet --curve "$out/$name.svg" --report "$out/$name.json" > "$out/$name.txt.part"
  mv "$out/$name.txt.part" "$out/$name.txt"
  python3 examples/paper/table.py "$out/$name.json"
}

# compare NAME ARGUMENTS…: the four methods, tuned on the first tenth of the rows; then what velox could have reached
# had somebody told it the best number of epochs (of EPOCHS; where that takes long, with the first seeds only).
compare() {
  local name=$1 epochs
  shift
  experiment "$name" "$@" --tune --compare baseline,baseline+,velox,continuous
  for epochs in $EPOCHS; do
    seeds=${EPOCHS_SEEDS:-$seeds} experiment "$name.velox-$epochs" "$@" --tune --method velox --retrain-epochs "$epochs"
  done
}
EPOCHS="1 2 5 10 15 20"

# steady NAME ARGUMENTS…: continuous by the other recipe for linear models.
steady() {
  local name=$1
  shift
  experiment "$name.steady" "$@" --tune --method continuous --recipe steady
}
