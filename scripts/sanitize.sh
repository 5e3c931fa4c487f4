#!/bin/sh
# Runs compute-sanitizer on every stage at its ragged check size; ends with 1 if it finds anything.
set -u
cd "$(dirname "$0")/.." || exit 2
out="${OUT:-build}/sanitizer"
mkdir -p "$out"
failed=0
for tool in memcheck racecheck; do
  if compute-sanitizer --tool "$tool" --error-exitcode 1 --target-processes all \
    "${PYTHON:-python3}" -m scripts.stage_launches 1 --all-layouts "$@" >"$out/$tool.log" 2>&1; then
    echo "$tool: clean ($(grep -c '^[a-z].*/[0-9][0-9]_' "$out/$tool.log") launches)"
  else
    failed=1
    echo "$tool: findings, see $out/$tool.log"
    grep '^=========' "$out/$tool.log" | head -20
  fi
done
exit $failed
