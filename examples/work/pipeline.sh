#!/bin/sh
# A shell pipeline whose steps survive anything: each is a task, `callboard work` runs them in order, two at a time where
# the dependencies allow it. Interrupt it, kill it, switch the machine off; the same command goes on where it was.
#
#     examples/work/pipeline.sh [DIRECTORY]
set -eu
directory=${1:-.}
cd "$directory"
workflow=pipeline
# The steps' place in the plan: whatever else the board holds is left alone.
scope=P1.M1

# One key for the batch: a second run adds nothing.
cat <<'END' | callboard add --batch - --key "$workflow" >/dev/null
[
  {"id": "fetch", "path": "P1.M1.T1", "description": "Fetch the words", "max_attempts": 3},
  {"id": "sort", "path": "P1.M1.T2", "description": "Sort them", "dependencies": ["fetch"]},
  {"id": "count", "path": "P1.M1.T3", "description": "Count them", "dependencies": ["fetch"]},
  {"id": "report", "path": "P1.M1.T4", "description": "Put both together", "dependencies": ["sort", "count"]}
]
END

# What a step does stands here and not on the board: others write to it, and their words are no commands.
exec callboard work --agents 2 --workflow "$workflow" --continue --scope "$scope" --retries 2 -- sh -euc '
    case $CALLBOARD_TASK_ID in
    fetch) mkdir -p out && printf "banana\napple\ncherry\napple\n" >out/words ;;
    sort) sort out/words >out/sorted ;;
    count) sort out/words | uniq -c >out/counts ;;
    report) cat out/sorted out/counts >out/report ;;
    *) echo "no step of this pipeline" >&2; exit 78 ;;
    esac'
